(* SPDX-License-Identifier: MIT *)
open Haft_io.As_eio
open Eio.Std

(* Asks three libraries for a book; the first answer counts, and the others stop looking. *)
let look clock name seconds () =
  match Eio.Time.sleep clock seconds with
  | () -> name
  | exception (Eio.Cancel.Cancelled _ as exn) ->
      traceln "%s stops looking" name;
      raise exn

let () =
  Eio_main.run @@ fun env ->
  let clock = Eio.Stdenv.clock env in
  traceln "%s has it"
    (Fiber.any [ look clock "the town" 100.; look clock "the school" 0.01; look clock "the abbey" 50. ]);
  (match Eio.Time.with_timeout clock 0.01 (fun () -> Ok (look clock "the castle" 100. ())) with
  | Ok name -> traceln "%s has it" name
  | Error `Timeout -> traceln "nobody has it");
  Switch.run ~name:"shelves" (fun sw ->
      List.iter
        (fun shelf ->
          Fiber.fork ~sw (fun () ->
              Fiber.yield ();
              traceln "shelf %d is tidy" shelf))
        [ 1; 2 ];
      traceln "everybody tidies")
