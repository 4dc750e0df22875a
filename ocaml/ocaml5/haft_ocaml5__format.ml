(* SPDX-License-Identifier: MIT *)
(* Formatted output. *)

include Stdlib.Format

let pp_infinity = 1_000_000_010
let pp_print_nothing (_ : formatter) () = ()

let pp_print_iter ?(pp_sep = pp_print_cut) iter pp_v formatter v =
  let is_first = ref true in
  iter
    (fun x ->
      if !is_first then is_first := false else pp_sep formatter ();
      pp_v formatter x)
    v

let pp_print_array ?pp_sep pp_v formatter v = pp_print_iter ?pp_sep Array.iter pp_v formatter v

let pp_print_substring ~pos ~len formatter text = pp_print_string formatter (Stdlib.String.sub text pos len)
let print_substring ~pos ~len text = pp_print_substring ~pos ~len std_formatter text
let pp_print_substring_as ~pos ~len formatter width text =
  pp_print_as formatter width (Stdlib.String.sub text pos len)

let print_substring_as ~pos ~len width text = pp_print_substring_as ~pos ~len std_formatter width text

(* (One of each for all domains, as in OCaml 4.) *)
let get_std_formatter () = std_formatter
let get_err_formatter () = err_formatter
let get_str_formatter () = str_formatter
let get_stdbuf () = stdbuf

(* A domain's text is written when it flushes its formatter, and at its end. *)
let make_synchronized_formatter write flush =
  Haft_ocaml5__threads.Domain.DLS.new_key (fun () ->
      let buffer = Buffer.create 512 in
      let flush () =
        let text = Buffer.contents buffer in
        Buffer.clear buffer;
        write text 0 (Stdlib.String.length text);
        flush ()
      in
      let formatter = make_formatter (Buffer.add_substring buffer) flush in
      Haft_ocaml5__threads.Domain.at_exit (pp_print_flush formatter);
      formatter)

let synchronized_formatter_of_out_channel channel =
  make_synchronized_formatter (output_substring channel) (fun () -> Stdlib.flush channel)
