(* SPDX-License-Identifier: MIT *)
(* Functions of haft_io.mli that the other tests use little, and a cancel at each wait between tasks. *)
open Alcotest
open Haft_io

exception Broken

let case name f = test_case name `Quick f
let run_case name f = case name (fun () -> run f)
let text = check string
let texts = check (list string)

let raises what accepts f =
  match f () with
  | _ -> failf "%s: it has returned" what
  | exception exn -> if not (accepts exn) then failf "%s: %s" what (Printexc.to_string exn)

let nap () = Time.sleep clock 0.001
let fails = function Failure _ -> true | _ -> false
let is_invalid = function Invalid_argument _ -> true | _ -> false

(* ---- Errors ---- *)

type Exn.err += Tired of int

let () =
  Exn.register_pp (fun formatter -> function
    | Tired hours ->
        Format.fprintf formatter "Tired after %d hours" hours;
        true
    | _ -> false)

let errors =
  [
    case "an error with contexts is printed with them, the innermost first" (fun () ->
        let exn = Exn.add_context (Exn.create (Tired 3)) "walking to %s" "town" in
        let exn =
          match Exn.reraise_with_context exn Exn.empty_backtrace "day %d" 2 with _ -> Exit | exception exn -> exn
        in
        text "shown" "Haft_io.Io Tired after 3 hours, walking to town, day 2" (Printexc.to_string exn);
        check bool "matched" true (match exn with Io (Tired 3, _) -> true | _ -> false);
        check bool "others stay" true (Exn.add_context Broken "anything" == Broken));
    case "an error without a printer, and one of another kind" (fun () ->
        text "X" "Haft_io.Io Stdlib.Exit" (Printexc.to_string (Exn.create (Exn.X Exit)));
        text "pp" (Printexc.to_string Broken) (Format.asprintf "%a" Exn.pp Broken));
    case "failures are combined: a cancel is none, and the same is one" (fun () ->
        let with_bt exn = (exn, Exn.empty_backtrace) in
        let both first second = fst (Exn.combine (with_bt first) (with_bt second)) in
        check bool "cancel first" true (both (Cancel.Cancelled Exit) Broken == Broken);
        check bool "cancel second" true (both Broken (Cancel.Cancelled Exit) == Broken);
        check bool "the same" true (both Broken Broken == Broken);
        check bool "two" true
          (match both Broken Exit with Exn.Multiple [ (Broken, _); (Exit, _) ] -> true | _ -> false));
  ]

(* ---- Tasks ---- *)

let tasks =
  [
    run_case "promises that are resolved, and how" (fun () ->
        check int "created" 5 (Promise.await (Promise.create_resolved 5));
        let good, set_good = Promise.create () and bad, set_bad = Promise.create () in
        check bool "not yet" false (Promise.is_resolved good);
        Promise.resolve_ok set_good 1;
        Promise.resolve_error set_bad Broken;
        check bool "now" true (Promise.is_resolved good);
        check int "ok" 1 (Promise.await_exn good);
        raises "error" (( = ) Broken) (fun () -> Promise.await_exn bad);
        ignore (Promise.id good));
    run_case "a switch and a context tell of their cancel" (fun () ->
        (try
           Switch.run ~name:"a room" (fun sw ->
               Switch.check sw;
               check bool "not yet" false (Fiber.is_cancelled ());
               text "dump" "a room" (List.hd (String.split_on_char '\n' (Format.asprintf "%a" Switch.dump sw)));
               Switch.fail sw Broken;
               check bool "now" true (Fiber.is_cancelled ());
               raises "check" (( = ) (Cancel.Cancelled Broken)) (fun () -> Switch.check sw);
               Cancel.protect (fun () -> check bool "protected" false (Fiber.is_cancelled ())))
         with Broken -> ());
        Cancel.sub (fun context ->
            let shown = Format.asprintf "%a" Cancel.dump context in
            text "context" "context" (List.hd (String.split_on_char '\n' shown))));
    run_case "lists that are filtered by tasks keep their order" (fun () ->
        let later i f = Time.sleep clock (0.0005 *. float (5 - i)); f i in
        let is_odd i = i mod 2 = 1 in
        check (list int) "filter" [ 1; 3 ] (Fiber.List.filter ~max_fibers:3 (fun i -> later i is_odd) [ 1; 2; 3; 4 ]);
        check (list int) "filter_map" [ 10; 30 ]
          (Fiber.List.filter_map (fun i -> later i (fun i -> if is_odd i then Some (10 * i) else None)) [ 1; 2; 3; 4 ]);
        raises "no tasks" is_invalid (fun () -> Fiber.List.iter ~max_fibers:0 ignore [ 1 ]));
    run_case "a value of tasks is taken away for a block" (fun () ->
        let key = Fiber.create_key () in
        Fiber.with_binding key 1 (fun () ->
            Fiber.without_binding key (fun () -> check bool "inside" true (Fiber.get key = None));
            check bool "after" true (Fiber.get key = Some 1)));
    run_case "a condition is looked at until the function has what it wants" (fun () ->
        let condition = Condition.create () and level = ref 0 in
        let looked = ref 0 in
        Fiber.both
          (fun () ->
            let enough () = incr looked; if !level >= 3 then Some !level else None in
            check int "level" 3 (Condition.loop_no_mutex condition enough))
          (fun () ->
            for _ = 1 to 3 do
              incr level;
              Condition.broadcast condition;
              Fiber.yield ();
              Fiber.yield ()
            done);
        check bool "looked" true (!looked >= 2));
    run_case "a stream tells how many items it has" (fun () ->
        let stream = Stream.create 3 in
        Stream.add stream 'a';
        Stream.add stream 'b';
        check int "length" 2 (Stream.length stream);
        check bool "dump" true (String.length (Format.asprintf "%a" Stream.dump stream) > 0));
    run_case "a lazy value that is one, and one that has failed" (fun () ->
        check int "value" 4 (Lazy.force (Lazy.from_val 4));
        let value = Lazy.from_fun ~cancel:`Record (fun () -> raise Broken) in
        raises "first" (( = ) Broken) (fun () -> Lazy.force value);
        raises "again" (( = ) Broken) (fun () -> Lazy.force value));
  ]

(* ---- A cancel at each wait between tasks ---- *)

(* Each makes an object, and returns a wait for it that nothing but a cancel ends, and what must hold afterwards. *)
let waits =
  [
    ("a promise", fun () ->
      let promise, resolver = Promise.create () in
      ( (fun () -> Promise.await promise),
        fun () ->
          Promise.resolve resolver ();
          Promise.await promise ));
    ("a semaphore", fun () ->
      let semaphore = Semaphore.make 0 in
      ( (fun () -> Semaphore.acquire semaphore),
        fun () ->
          Semaphore.release semaphore;
          Semaphore.acquire semaphore;
          check int "value" 0 (Semaphore.get_value semaphore) ));
    ("a mutex", fun () ->
      let mutex = Mutex.create () in
      Mutex.lock mutex;
      ( (fun () -> Mutex.lock mutex),
        fun () ->
          Mutex.unlock mutex;
          check bool "free" true (Mutex.try_lock mutex) ));
    ("use_ro", fun () ->
      let mutex = Mutex.create () in
      ( (fun () -> Mutex.use_ro mutex Fiber.await_cancel),
        fun () -> check bool "free" true (Mutex.try_lock mutex) ));
    ("a condition", fun () ->
      let condition = Condition.create () in
      ((fun () -> Condition.await_no_mutex condition), fun () -> Condition.broadcast condition));
    ("loop_no_mutex", fun () ->
      let condition = Condition.create () in
      ((fun () -> Condition.loop_no_mutex condition (fun () -> None)), fun () -> Condition.broadcast condition));
    ("an item of a stream", fun () ->
      let stream = Stream.create 1 in
      ( (fun () -> Stream.take stream),
        fun () ->
          Stream.add stream ();
          Stream.take stream ));
    ("room in a stream", fun () ->
      let stream = Stream.create 1 in
      Stream.add stream ();
      ( (fun () -> Stream.add stream ()),
        fun () ->
          Stream.take stream;
          check bool "empty" true (Stream.take_nonblocking stream = None) ));
    ("a lazy value", fun () ->
      let waits = ref true in
      let value = Lazy.from_fun ~cancel:`Restart (fun () -> if !waits then Fiber.await_cancel ()) in
      ( (fun () -> Fiber.both (fun () -> Lazy.force value) (fun () -> Lazy.force value)),
        fun () ->
          waits := false;
          Lazy.force value ));
    ("an item of a pool", fun () ->
      let pool = Pool.create 1 ignore in
      ( (fun () -> Pool.use pool (fun () -> Pool.use pool ignore)), fun () -> Pool.use pool ignore ));
    ("room in an executor pool", fun () ->
      let sleep sw pool () =
        Fiber.fork_daemon ~sw (fun () ->
            Executor_pool.submit_exn pool ~weight:1. Fiber.await_cancel);
        Executor_pool.submit_exn pool ~weight:1. ignore
      in
      ( (fun () ->
          Switch.run (fun sw -> sleep sw (Executor_pool.create ~sw ~domain_count:1 domain_mgr) ())),
        ignore ));
    ("a time", fun () -> ((fun () -> Time.sleep clock 1000.), ignore));
    ("a monotonic time", fun () -> ((fun () -> Time.Mono.sleep mono_clock 1000.), ignore));
    ("no limit of time", fun () -> ((fun () -> Time.Timeout.sleep Time.Timeout.none), ignore));
    ("the tasks of a switch", fun () ->
      ((fun () -> Switch.run (fun sw -> Fiber.fork ~sw Fiber.await_cancel)), ignore));
    ("both", fun () -> ((fun () -> Fiber.both Fiber.await_cancel Fiber.await_cancel), ignore));
    ("any", fun () -> ((fun () -> Fiber.any [ Fiber.await_cancel; Fiber.await_cancel ]), ignore));
    ("none of any", fun () -> ((fun () -> Fiber.any []), ignore));
    ("a list", fun () -> ((fun () -> Fiber.List.iter ~max_fibers:1 Fiber.await_cancel [ (); () ]), ignore));
    ("a sequence", fun () ->
      ( (fun () ->
          Switch.run (fun sw -> Seq.iter ignore (Fiber.fork_seq ~sw (fun _ -> Fiber.await_cancel ())))),
        ignore ));
    ("a flush", fun () ->
      let sink = Flow.sink_of_write (fun _ -> Fiber.await_cancel ()) in
      ((fun () -> Buf_write.with_flow sink (fun out -> Buf_write.string out "a"; Buf_write.flush out)), ignore));
    ("yields", fun () -> ((fun () -> while true do Fiber.yield () done), ignore));
  ]

let cancels =
  List.map
    (fun (name, make) ->
      run_case ("a cancel ends the wait for " ^ name) (fun () ->
          let wait, afterwards = make () in
          (match Cancel.sub (fun context ->
                     Fiber.both wait (fun () ->
                         Fiber.yield ();
                         nap ();
                         Cancel.cancel context Exit))
           with
          | () -> fail "it has returned"
          | exception Cancel.Cancelled Exit -> ());
          afterwards ();
          (* A task that is cancelled already does not begin to wait. *)
          let wait, afterwards = make () in
          (match Cancel.sub (fun context ->
                     Cancel.cancel context Exit;
                     wait ();
                     Fiber.check ())
           with
          | () -> fail "it has returned"
          | exception Cancel.Cancelled Exit -> ());
          afterwards ()))
    waits

(* ---- Bytes ---- *)

let bytes =
  [
    case "views of bytes: parts" (fun () ->
        let view = Cstruct.of_string ~off:1 ~len:5 "xhellox" in
        text "all" "hello" (Cstruct.to_string view);
        text "shift" "llo" (Cstruct.to_string (Cstruct.shift view 2));
        let first, second = Cstruct.split view 1 in
        text "split" "h ello" (Cstruct.to_string first ^ " " ^ Cstruct.to_string second);
        text "bigarray" "ell" (Cstruct.to_string (Cstruct.of_bigarray ~off:1 ~len:3 (Cstruct.to_bigarray view)));
        text "bytes" "el" (Bytes.to_string (Cstruct.to_bytes ~off:1 ~len:2 view));
        text "of bytes" "ab" (Cstruct.to_string (Cstruct.of_bytes (Bytes.of_string "ab")));
        raises "shift" is_invalid (fun () -> Cstruct.shift view 6);
        raises "split" is_invalid (fun () -> Cstruct.split view (-1)));
    case "views of bytes: changes reach all views of the memory" (fun () ->
        let view = Cstruct.create 6 in
        check int "zero" 0 (Cstruct.get_uint8 view 5);
        Cstruct.set_char view 0 'a';
        Cstruct.set_uint8 (Cstruct.shift view 1) 0 (256 + Char.code 'b');
        Cstruct.blit_from_bytes (Bytes.of_string "-cd-") 1 view 2 2;
        Cstruct.blit view 0 view 4 2;
        text "all" "abcdab" (Cstruct.to_string view);
        check bool "char" true (Cstruct.get_char view 3 = 'd');
        let target = Bytes.make 4 '.' in
        Cstruct.blit_to_bytes view 2 target 1 2;
        text "to bytes" ".cd." (Bytes.to_string target);
        List.iter
          (fun (what, f) -> raises what is_invalid f)
          [
            ("get_char", fun () -> ignore (Cstruct.get_char view 6));
            ("set_char", fun () -> Cstruct.set_char view (-1) 'x');
            ("blit", fun () -> Cstruct.blit view 0 view 5 2);
            ("blit_from_bytes", fun () -> Cstruct.blit_from_bytes target 3 view 0 2);
            ("blit_to_bytes", fun () -> Cstruct.blit_to_bytes view 0 target 3 2);
          ]);
    case "views of bytes: several" (fun () ->
        let views = List.map Cstruct.of_string [ "ab"; ""; "cde" ] in
        text "concat" "abcde" (Cstruct.to_string (Cstruct.concat views));
        check int "lenv" 5 (Cstruct.lenv views);
        texts "shiftv" [ "de" ] (List.map Cstruct.to_string (Cstruct.shiftv views 3));
        check int "shiftv, all" 0 (Cstruct.lenv (Cstruct.shiftv views 5));
        raises "shiftv" is_invalid (fun () -> Cstruct.shiftv views 6);
        text "append" "abab" (Cstruct.to_string (Cstruct.append (List.hd views) (List.hd views)));
        check bool "equal" true (Cstruct.equal (Cstruct.of_string "ab") (List.hd views));
        check bool "not equal" false (Cstruct.equal (Cstruct.create_unsafe 3) (List.hd views)));
  ]

(* ---- Time ---- *)

let span_of ns = Mtime.Span.of_uint64_ns ns

let times =
  [
    case "spans and times" (fun () ->
        let open Mtime in
        let ns span = Int64.to_int (Span.to_uint64_ns span) in
        check (list int) "units" [ 0; 1; 1_000; 1_000_000; 1_000_000_000 ]
          (List.map ns Span.[ zero; ns; us; ms; s ]);
        check int "sum" 2_000_003 (ns Span.(add (2 * ms) (3 * ns)));
        check bool "floats" true (Option.map Span.to_float_ns (Span.of_float_ns 5.) = Some 5.);
        check bool "negative" true (Span.of_float_ns (-1.) = None);
        check bool "compare" true (Span.compare Span.ms Span.s < 0);
        let time = of_uint64_ns 10L in
        let later = Option.get (add_span time (span_of 5L)) in
        check int "later" 15 (Int64.to_int (to_uint64_ns later));
        check int "apart" 5 (ns (span later time));
        check bool "earlier" true (compare time later < 0));
    case "clocks, in virtual time" (fun () ->
        let sleeps name sleep expected =
          let slept =
            simulate ~seed:1 (fun () ->
                let before = Time.now clock in
                sleep ();
                Time.now clock -. before)
          in
          if Float.abs (slept -. expected) > 0.001 then failf "%s: %g" name slept
        in
        let mono_after seconds =
          Option.get (Mtime.add_span (Time.Mono.now mono_clock) (span_of (Int64.of_float (seconds *. 1e9))))
        in
        sleeps "sleep_until" (fun () -> Time.sleep_until clock (Time.now clock +. 5.)) 5.;
        sleeps "sleep_until, over" (fun () -> Time.sleep_until clock (Time.now clock -. 5.)) 0.;
        sleeps "Mono.sleep" (fun () -> Time.Mono.sleep mono_clock 2.) 2.;
        sleeps "Mono.sleep_until" (fun () -> Time.Mono.sleep_until mono_clock (mono_after 3.)) 3.;
        sleeps "Mono.sleep_span" (fun () -> Time.Mono.sleep_span mono_clock Mtime.Span.s) 1.;
        sleeps "Timeout.sleep" (fun () -> Time.Timeout.(sleep (v mono_clock Mtime.Span.(4 * s)))) 4.);
    run_case "limits of time" (fun () ->
        let short = Time.Timeout.v mono_clock Mtime.Span.ms in
        raises "run_exn" (( = ) Time.Timeout) (fun () -> Time.Timeout.run_exn short Fiber.await_cancel);
        check int "in time" 3 (Time.Timeout.run_exn (Time.Timeout.seconds mono_clock 100.) (fun () -> 3));
        text "pp" "0.001s" (Format.asprintf "%a" Time.Timeout.pp short);
        text "none" "(no timeout)" (Format.asprintf "%a" Time.Timeout.pp Time.Timeout.none));
  ]

(* ---- Readers and writers ---- *)

let parsed parser input = Buf_read.parse_string_exn parser input

let read_with parser input =
  match Buf_read.parse_string parser input with Ok text -> text | Error (`Msg message) -> "error: " ^ message

(* A source of one byte at a time. *)
let bytewise input =
  let at = ref 0 in
  Flow.source_of_read (fun view ->
      if !at = String.length input then raise End_of_file;
      Cstruct.set_char view 0 input.[!at];
      incr at;
      1)

let is_digit = function '0' .. '9' -> true | _ -> false

let readers =
  [
    case "numbers of each size, in either order of bytes" (fun () ->
        let written write =
          let buffer = Buffer.create 100 in
          run (fun () -> Buf_write.with_flow (Flow.buffer_sink buffer) write);
          Buffer.contents buffer
        in
        let output =
          written (fun out ->
              Buf_write.BE.uint32 out 0x01020304l;
              Buf_write.BE.uint64 out 0x0102030405060708L;
              Buf_write.BE.float out 1.5;
              Buf_write.LE.uint16 out 0x0102;
              Buf_write.LE.uint64 out 0x0102030405060708L;
              Buf_write.LE.float out (-2.5);
              Buf_write.LE.double out 1e300)
        in
        text "bytes" "\001\002\003\004\001\002\003\004\005\006\007\008" (String.sub output 0 12);
        text "little" "\002\001\008\007\006\005\004\003\002\001" (String.sub output 16 10);
        let input = Buf_read.of_flow (bytewise output) ~max_size:100 in
        check bool "BE.uint32" true (Buf_read.BE.uint32 input = 0x01020304l);
        check bool "BE.uint64" true (Buf_read.BE.uint64 input = 0x0102030405060708L);
        check bool "BE.float" true (Buf_read.BE.float input = 1.5);
        check int "LE.uint16" 0x0102 (Buf_read.LE.uint16 input);
        check bool "LE.uint64" true (Buf_read.LE.uint64 input = 0x0102030405060708L);
        check bool "LE.float" true (Buf_read.LE.float input = -2.5);
        check bool "LE.double" true (Buf_read.LE.double input = 1e300);
        Buf_read.end_of_input input);
    case "the bytes at hand" (fun () ->
        let input = Buf_read.of_flow (bytewise "hello") ~initial_size:2 ~max_size:5 in
        check int "none yet" 0 (Buf_read.buffered_bytes input);
        Buf_read.ensure input 3;
        check int "some" 3 (Buf_read.buffered_bytes input);
        text "peek" "hel" (Cstruct.to_string (Buf_read.peek input));
        Buf_read.consume input 1;
        check int "consumed" 1 (Buf_read.consumed_bytes input);
        check bool "next" true (Buf_read.peek_char input = Some 'e');
        check bool "no end yet" false (Buf_read.eof_seen input);
        text "rest" "ello" (Flow.read_all (Buf_read.as_flow input));
        check bool "end" true (Buf_read.eof_seen input && Buf_read.at_end_of_input input);
        check bool "no next" true (Buf_read.peek_char input = None);
        raises "ensure" (( = ) End_of_file) (fun () -> Buf_read.ensure input 1);
        raises "consume" is_invalid (fun () -> Buf_read.consume input 1);
        raises "too many" (( = ) Buf_read.Buffer_limit_exceeded) (fun () ->
            Buf_read.ensure (Buf_read.of_flow (bytewise "hello") ~max_size:4) 5));
    case "texts, characters and what is passed over" (fun () ->
        let open Buf_read in
        text "string" "b" (parsed (Syntax.( *> ) (string "ab") (map (String.make 1) any_char)) "abb");
        text "another" "error: Expected \"abc\" but got \"abd\"" (read_with (map (fun () -> "") (string "abc")) "abd");
        text "skip_while" "x" (parsed (Syntax.( *> ) (skip_while is_digit) take_all) "123x");
        text "skip_while, all" "" (parsed (Syntax.( *> ) (skip_while is_digit) take_all) "123");
        text "skip_while1" "error: skip_while1"
          (read_with (Syntax.( *> ) (skip_while1 is_digit) take_all) "x");
        text "its own words" "error: a number"
          (read_with (take_while1 ~on_error:(fun () -> failwith "a number") is_digit) "x");
        text "skip" "lo" (Buf_read.parse_exn ~max_size:3 (Syntax.( *> ) (skip 3) take_all) (bytewise "hello"));
        text "skip, too far" "error: Unexpected end-of-file" (read_with (Syntax.( *> ) (skip 9) take_all) "hello");
        raises "skip" is_invalid (fun () -> parsed (skip (-1)) "hello");
        text "of_buffer" "abc" (take_all (of_buffer (Cstruct.to_bigarray (Cstruct.of_string "abc")))));
    case "a line that the end cuts off has all of its bytes" (fun () ->
        texts "lines" [ "a"; "b\r" ] (List.of_seq (Buf_read.lines (Buf_read.of_string "a\r\nb\r"))));
    case "parsers of parsers" (fun () ->
        let open Buf_read in
        let open Syntax in
        let digit = map (fun c -> Char.code c - 48) any_char in
        let both = let+ a = digit and+ b = digit in (10 * a) + b in
        check int "and+" 42 (parsed both "42");
        let dependent = let* a = digit and* b = digit in return (a - b) in
        check int "and*" 2 (parsed dependent "42");
        check (Alcotest.pair int int) "<*>" (4, 2) (parsed (digit <*> digit) "42");
        check (Alcotest.pair int int) "pair" (4, 2) (parsed (pair digit digit) "42");
        check int "<*" 4 (parsed (digit <* digit) "42");
        check int "return" 7 (parsed (return 7) "");
        let numbers = bind (seq ~stop:(map (( = ) (Some '.')) peek_char) digit) (fun all -> return (List.of_seq all)) in
        check (list int) "seq" [ 1; 2 ] (parsed (numbers <* char '.') "12.");
        check bool "format_errors" true (parsed (format_errors digit) "" = Error (`Msg "Unexpected end-of-file"));
        raises "parse_exn" fails (fun () -> parse_exn ~max_size:9 digit (bytewise "12"));
        raises "parse_string_exn" fails (fun () -> parse_string_exn digit "12");
        check bool "end_of_input" true (parse_string (digit <* end_of_input) "1" = Ok 1));
  ]

let collected body =
  let buffer = Buffer.create 100 in
  body (Flow.buffer_sink buffer);
  Buffer.contents buffer

let writers =
  [
    run_case "bytes, views and formats" (fun () ->
        let output =
          collected (fun sink ->
              Buf_write.with_flow ~initial_size:1 sink (fun out ->
                  Buf_write.bytes out ~off:1 ~len:2 (Bytes.of_string "xabx");
                  Buf_write.cstruct out (Cstruct.of_string "cd");
                  Buf_write.schedule_cstruct out (Cstruct.of_string "ef");
                  check int "pending" 6 (Buf_write.pending_bytes out);
                  let formatter = Buf_write.make_formatter out in
                  Format.fprintf formatter "@[<v>%d@,%s@]" 12 "x";
                  Format.pp_print_flush formatter ();
                  check int "flushed" 0 (Buf_write.pending_bytes out)))
        in
        text "all" "abcdef12\nx" output);
    run_case "a writer that is closed writes what it has, and takes no more" (fun () ->
        let output =
          collected (fun sink ->
              Buf_write.with_flow sink (fun out ->
                  Buf_write.string out "all";
                  check bool "open" false (Buf_write.is_closed out);
                  Buf_write.close out;
                  check bool "closed" true (Buf_write.is_closed out);
                  raises "string" fails (fun () -> Buf_write.string out "more");
                  Buf_write.close out))
        in
        text "all" "all" output);
    run_case "a flow of functions, which is shut down and closed" (fun () ->
        let log = Buffer.create 100 in
        let note format = Printf.bprintf log format in
        let flow =
          Flow.two_way
            ~shutdown:(fun how -> note "shutdown %s, " (match how with `Send -> "send" | `Receive | `All -> "other"))
            ~close:(fun () -> note "close")
            ~read:(fun view -> Cstruct.set_char view 0 'r'; 1)
            ~write:(fun views -> note "write %d, " (Cstruct.lenv views); 1)
            ()
        in
        check int "read" 1 (Flow.single_read flow (Cstruct.create 3));
        check int "single_write" 1 (Flow.single_write flow [ Cstruct.of_string "abc" ]);
        Flow.write flow [ Cstruct.of_string "d"; Cstruct.of_string "e" ];
        Flow.shutdown flow `Send;
        Resource.close flow;
        text "log" "write 3, write 2, write 1, shutdown send, close" (Buffer.contents log));
  ]

(* ---- The network, files and processes ---- *)

let ip_text address = Format.asprintf "%a" Net.Ipaddr.pp address
let folder_name () = Filename.concat (Filename.get_temp_dir_name ()) (Printf.sprintf "haft-%d-ref" (Unix.getpid ()))

let with_folder body =
  let folder = Path.(fs / folder_name ()) in
  Path.mkdir ~perm:0o700 folder;
  Fun.protect ~finally:(fun () -> Path.rmtree folder) (fun () -> body folder)

let is_not_found = function Io (Fs.E (Not_found _), _) -> true | _ -> false

let outside =
  [
    case "addresses" (fun () ->
        texts "shown" [ "0.0.0.0"; "127.0.0.1"; "::"; "::1" ]
          Net.Ipaddr.[ ip_text V4.any; ip_text V4.loopback; ip_text V6.any; ip_text V6.loopback ];
        let raw = Net.Ipaddr.of_raw "\001\002\003\004" in
        text "of_raw" "1.2.3.4" (ip_text raw);
        raises "of_raw" is_invalid (fun () -> Net.Ipaddr.of_raw "123");
        text "to_unix" "1.2.3.4" (Unix.string_of_inet_addr (Net.Ipaddr.to_unix raw));
        text "of_unix" "::1" (ip_text (Net.Ipaddr.of_unix Unix.inet6_addr_loopback));
        let version address = Net.Ipaddr.fold ~v4:(fun _ -> 4) ~v6:(fun _ -> 6) address in
        check (list int) "fold" [ 4; 6 ] [ version raw; version Net.Ipaddr.V6.loopback ]);
    run_case "names have addresses for streams and for datagrams" (fun () ->
        let is_local_ip address = List.mem (ip_text address) [ "127.0.0.1"; "::1" ] in
        let is_stream = function `Tcp (address, 80) -> is_local_ip address | _ -> false in
        let is_datagram = function `Udp (address, 80) -> is_local_ip address | _ -> false in
        let streams = Net.getaddrinfo_stream ~service:"80" net "localhost" in
        let datagrams = Net.getaddrinfo_datagram ~service:"80" net "localhost" in
        check bool "streams" true (streams <> [] && List.for_all is_stream streams);
        check bool "datagrams" true (datagrams <> [] && List.for_all is_datagram datagrams));
    run_case "a connection of accept_fork is closed when its handler has ended, and its failure told" (fun () ->
        Switch.run (fun sw ->
            let socket = Net.listen ~sw ~backlog:5 net (`Tcp (Net.Ipaddr.V4.loopback, 0)) in
            let failures = ref 0 in
            let on_error exn = check bool "which" true (exn = Broken); incr failures in
            let ask handler =
              snd
                (Fiber.pair
                   (fun () -> Net.accept_fork ~sw socket ~on_error handler)
                   (fun () -> Flow.read_all (Net.connect ~sw net (Net.listening_addr socket))))
            in
            text "answer" "hi" (ask (fun flow _ -> Flow.copy_string "hi" flow));
            text "no answer" "" (ask (fun _ _ -> raise Broken));
            check int "failures" 1 !failures;
            Net.close socket;
            raises "closed" is_invalid (fun () -> Net.accept ~sw socket)));
    run_case "two sockets of datagrams have one port, if they are told to" (fun () ->
        Switch.run (fun sw ->
            let address = `Udp (Net.Ipaddr.V4.loopback, 47914) in
            let bind ?reuse_port () = ignore (Net.datagram_socket ?reuse_port ~sw net address) in
            bind ~reuse_port:true ();
            bind ~reuse_port:true ();
            raises "a third" (function Io _ -> true | _ -> false) bind));
    case "paths" (fun () ->
        let split path = Option.map (fun ((_, folder), name) -> (folder, name)) (Path.split (fst fs, path)) in
        List.iter
          (fun (path, expected) ->
            if split path <> expected then failf "split %S" path)
          [
            ("foo/bar", Some ("foo", "bar"));
            ("/foo/bar", Some ("/foo", "bar"));
            ("/foo", Some ("/", "foo"));
            ("/foo/bar//baz/", Some ("/foo/bar", "baz"));
            ("bar", Some ("", "bar"));
            ("", None);
            ("/", None);
            ("//", None);
          ];
        text "native" "/a/b" (Path.native_exn Path.(fs / "/a" / "b"));
        check bool "native" true (Path.native Path.(cwd / "a") = Some "a");
        texts "pp" [ "<cwd:a>"; "<fs:/a>"; "<fs>" ]
          (List.map (Format.asprintf "%a" Path.pp) Path.[ cwd / "a"; fs / "/a"; fs ]));
    run_case "folders that are opened, and out of which no path leads" (fun () ->
        with_folder (fun folder ->
            Path.save ~create:(`Exclusive 0o600) Path.(folder / "inside") "in";
            Path.with_open_dir folder (fun opened ->
                text "inside" "in" (Path.load Path.(opened / "inside"));
                text "pp" (Printf.sprintf "<%s:x>" (Filename.basename (folder_name ())))
                  (Format.asprintf "%a" Path.pp Path.(opened / "x"));
                raises "outside"
                  (function Io (Fs.E (Permission_denied _), _) -> true | _ -> false)
                  (fun () -> Path.load Path.(opened / "../x")));
            check bool "is_directory" true (Path.is_directory folder);
            Switch.run (fun sw ->
                raises "missing" is_not_found (fun () -> Path.open_dir ~sw Path.(folder / "none"));
                raises "no folder" (function Io _ -> true | _ -> false) (fun () ->
                    Path.open_dir ~sw Path.(folder / "inside")))));
    run_case "files that are opened, and their permissions" (fun () ->
        with_folder (fun folder ->
            let file = Path.(folder / "f") in
            Switch.run (fun sw ->
                let out = Path.open_out ~sw ~create:(`Exclusive 0o600) file in
                Flow.copy_string "abc" out;
                Path.chmod ~follow:true ~perm:0o640 file;
                let it = File.stat out in
                check bool "kind" true (it.kind = `Regular_file);
                check int "perm" 0o640 it.perm;
                let input = Path.open_in ~sw file in
                let view = Cstruct.create 10 in
                check int "pread" 2 (File.pread input ~file_offset:1L [ Cstruct.empty; view ]);
                raises "pread" (( = ) End_of_file) (fun () -> File.pread input ~file_offset:3L [ view ]);
                raises "pread_exact" (( = ) End_of_file) (fun () -> File.pread_exact input ~file_offset:0L [ view ]));
            text "with_open_in" "abc" (Path.with_open_in file Flow.read_all)));
    run_case "a process has a number, and its end is shown" (fun () ->
        Switch.run (fun sw ->
            let child = Process.spawn ~sw process_mgr [ "true" ] in
            check bool "pid" true (Process.pid child > 1);
            Process.await_exn child;
            text "exited" "Exited (code 3)" (Format.asprintf "%a" Process.pp_status (`Exited 3))));
    run_case "secrets differ, and are the seed's in a simulation" (fun () ->
        let secret () =
          let view = Cstruct.create 16 in
          Flow.read_exact secure_random view;
          Cstruct.to_string view
        in
        check bool "they differ" true (secret () <> secret ()));
    case "secrets are the seed's in a simulation" (fun () ->
        let secret seed =
          simulate ~seed (fun () ->
              let view = Cstruct.create 16 in
              Flow.read_exact secure_random view;
              Cstruct.to_string view)
        in
        check bool "the same seed" true (secret 1 = secret 1);
        check bool "another seed" true (secret 1 <> secret 2));
    run_case "the standard streams stay open" (fun () ->
        Flow.copy_string "" stderr;
        Flow.copy_string "" stderr);
  ]

(* ---- Stand-ins for domains ---- *)

let stand_ins =
  [
    run_case "run is here, run_raw on a thread" (fun () ->
        let here = Thread.id (Thread.self ()) in
        let id () = Thread.id (Thread.self ()) in
        check int "run" here (Domain_manager.run domain_mgr (fun () -> Fiber.yield (); id ()));
        check bool "run_raw" true (Domain_manager.run_raw domain_mgr id <> here));
    run_case "a pool runs so many at a time, and hands failures on" (fun () ->
        Switch.run (fun sw ->
            let pool = Executor_pool.create ~sw ~domain_count:2 domain_mgr in
            let now = ref 0 and most = ref 0 in
            let work i () =
              incr now;
              most := max !most !now;
              Time.sleep clock 0.001;
              decr now;
              i
            in
            let fork i = Executor_pool.submit_fork ~sw pool ~weight:1. (work i) in
            check (list int) "results" [ 1; 2; 3; 4; 5 ] (List.map Promise.await_exn (List.map fork [ 1; 2; 3; 4; 5 ]));
            check int "most" 2 !most;
            check int "submit_exn" 6 (Executor_pool.submit_exn pool ~weight:0.5 (work 6));
            check bool "submit" true (Executor_pool.submit pool ~weight:0. (fun () -> raise Broken) = Error Broken);
            raises "weight" is_invalid (fun () -> Executor_pool.submit_exn pool ~weight:2. ignore)));
  ]

(* ---- Mocks ---- *)

let mocks =
  [
    case "handlers of mocks: a sequence, then the default, or a function" (fun () ->
        Mock.Backend.run (fun () ->
            let handler = Mock.Handler.make (`Return "default") in
            Mock.Handler.seq handler [ `Return "one"; `Raise Broken ];
            text "first" "one" (Mock.Handler.run handler);
            raises "second" (( = ) Broken) (fun () -> Mock.Handler.run handler);
            text "then" "default" (Mock.Handler.run handler);
            Mock.Handler.set_handler handler (fun () -> "function");
            text "function" "function" (Mock.Handler.run handler);
            text "default" "default" (Mock.Handler.run_default_action handler);
            let promise, resolver = Promise.create () in
            Fiber.both
              (fun () ->
                text "awaited" "got it" (Mock.Action.run (Mock.Action.map (( ^ ) "got ") (`Await promise))))
              (fun () -> Promise.resolve resolver (Ok "it"))));
    case "a mock of a network resolves names, and has sockets of datagrams" (fun () ->
        Mock.Backend.run (fun () ->
            let net = Mock.Net.make "net" in
            let address = `Tcp (Net.Ipaddr.V4.loopback, 80) in
            Mock.Net.on_getaddrinfo net [ `Return [ address ] ];
            check bool "name" true (Net.getaddrinfo_stream net "a name" = [ address ]);
            Mock.Net.on_datagram_socket net [ `Raise Broken ];
            raises "datagrams" (( = ) Broken) (fun () -> Switch.run (fun sw -> Net.datagram_socket ~sw net `UdpV4));
            Switch.run (fun sw -> Mock.Flow.attach_to_switch (Mock.Flow.make "attached") sw)));
    case "a mock of a monotonic clock is moved" (fun () ->
        Mock.Backend.run (fun () ->
            let mono = Mock.Clock.Mono.make () in
            check bool "nobody waits" false (Mock.Clock.Mono.try_advance mono);
            Fiber.both
              (fun () -> Time.Mono.sleep mono 5.)
              (fun () -> Mock.Clock.Mono.set_time mono (Mtime.of_uint64_ns 6_000_000_000L));
            check bool "now" true (Time.Mono.now mono = Mtime.of_uint64_ns 6_000_000_000L)));
  ]

let () =
  Alcotest.run "haft-io, the reference"
    [
      ("errors", errors);
      ("tasks", tasks);
      ("cancels", cancels);
      ("bytes", bytes);
      ("times", times);
      ("readers", readers);
      ("writers", writers);
      ("outside", outside);
      ("stand-ins", stand_ins);
      ("mocks", mocks);
    ]
