(* An exception of a signal's handler while a computation performs is raised in the computation:
   never between its perform and the end of the clause, which allocates nothing. *)
open Effect
open Effect.Deep

type _ Effect.t += Tick : unit Effect.t

exception Alarm

let ticking = ref false
let inside = ref 0
let outside = ref 0

let rec tick () =
  perform Tick;
  tick ()

let on_alarm _ =
  if !ticking then begin
    ticking := false;
    raise Alarm
  end

let run () =
  match
    try
      ticking := true;
      tick ()
    with Alarm -> incr inside
  with
  | () -> ()
  | effect Tick, k -> continue k ()

let () =
  let timer interval = ignore (Unix.setitimer ITIMER_VIRTUAL { it_interval = interval; it_value = interval }) in
  Sys.set_signal Sys.sigvtalrm (Signal_handle on_alarm);
  timer 0.001;
  for _ = 1 to 300 do
    try run () with Alarm -> incr outside
  done;
  timer 0.;
  Printf.printf "inside %d, outside %d\n" !inside !outside
