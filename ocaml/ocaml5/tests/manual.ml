(* Every item of Haft_ocaml5, held to its behaviour in OCaml 5's manual: written for OCaml 5, compiled with
   -open Haft_ocaml5. *)

let failures = ref 0

let check what holds =
  if not holds then begin
    incr failures;
    Printf.printf "%s: wrong\n" what
  end

let raises expected f = match f () with _ -> false | exception exn -> exn = expected

(* Domain *)

let fresh = Domain.DLS.new_key (fun () -> ref 0)
let inherited = Domain.DLS.new_key ~split_from_parent:(fun n -> n + 1) (fun () -> 10)

let domains () =
  let before = ref 0 in
  Domain.before_first_spawn (fun () -> incr before);
  check "self" (Domain.is_main_domain () && (Domain.self () :> int) = 0 && Domain.self_index () = 0);
  let fib_domain n =
    let rec fib n = if n < 2 then 1 else fib (n - 1) + fib (n - 2) in
    Domain.spawn (fun () -> fib n)
  in
  let first = fib_domain 10 and second = fib_domain 11 in
  check "join" (Domain.join first = 89 && Domain.join second = 144 && Domain.join first = 89);
  check "before_first_spawn" (!before = 1);
  check "before_first_spawn, late"
    (match Domain.before_first_spawn ignore with () -> false | exception Invalid_argument _ -> true);
  check "exception" (raises Exit (fun () -> Domain.join (Domain.spawn (fun () -> raise Exit))));
  let other = Domain.spawn (fun () -> (Domain.self (), Domain.is_main_domain ())) in
  let id, is_main = Domain.join other in
  check "get_id" (id = Domain.get_id other && (not is_main) && id <> Domain.get_id first);
  Domain.DLS.get fresh := 5;
  Domain.DLS.set inherited 20;
  let in_child = Domain.spawn (fun () -> (!(Domain.DLS.get fresh), Domain.DLS.get inherited)) in
  check "DLS" (Domain.join in_child = (0, 21));
  check "DLS, parent" (!(Domain.DLS.get fresh) = 5 && Domain.DLS.get inherited = 20);
  let order = ref [] in
  let leave name () = order := name :: !order in
  let leaving () = Domain.at_exit (leave "first"); Domain.at_exit (leave "last") in
  Domain.join (Domain.spawn leaving);
  check "at_exit" (!order = [ "first"; "last" ]);
  let failing () = Domain.at_exit (fun () -> failwith "at exit") in
  check "at_exit raises" (raises (Failure "at exit") (fun () -> Domain.join (Domain.spawn failing)));
  check "at_exit and the domain raise"
    (raises Exit (fun () -> Domain.join (Domain.spawn (fun () -> failing (); raise Exit))));
  Domain.at_exit (fun () -> print_endline "the main domain ends");
  Domain.cpu_relax ();
  check "recommended_domain_count" (Domain.recommended_domain_count () = 1)

(* Mutex, Condition, Semaphore, Thread, Atomic *)

let synchronisation () =
  let mutex = Stdlib.Mutex.create () and arrived = Stdlib.Condition.create () in
  let box = ref None in
  let producer =
    Domain.spawn (fun () ->
        Mutex.protect mutex (fun () ->
            box := Some "parcel";
            Condition.signal arrived))
  in
  let received =
    Mutex.protect mutex (fun () ->
        while !box = None do
          Condition.wait arrived mutex
        done;
        Option.get !box)
  in
  Domain.join producer;
  check "condition" (received = "parcel");
  check "protect raises" (raises Not_found (fun () -> Mutex.protect mutex (fun () -> raise Not_found)));
  check "protect unlocks" (Mutex.try_lock mutex);
  Mutex.unlock mutex;
  check "protect, unlocked" (match Mutex.protect mutex (fun () -> Mutex.unlock mutex) with
    | () -> false
    | exception Sys_error _ -> true);
  let counting = Stdlib.Semaphore.Counting.make 1 in
  Semaphore.Counting.acquire counting;
  check "semaphore" (not (Semaphore.Counting.try_acquire counting));
  Semaphore.Counting.release counting;
  let binary = Semaphore.Binary.make true in
  check "binary semaphore" (Semaphore.Binary.try_acquire binary);
  let reached = Atomic.make_contended 0 in
  let thread = Thread.create (fun () -> Atomic.incr reached; ignore (raise Thread.Exit)) () in
  Thread.join thread;
  let thread = Thread.create (fun () -> Atomic.incr reached; Thread.exit (); Atomic.incr reached) () in
  Thread.join thread;
  check "Thread.Exit" (Atomic.get reached = 2);
  let uncaught = Atomic.make None in
  Thread.set_uncaught_exception_handler (fun exn -> Atomic.set uncaught (Some exn));
  Thread.join (Thread.create (fun () -> raise Not_found) ());
  check "set_uncaught_exception_handler" (Atomic.get uncaught = Some Not_found);
  Thread.set_uncaught_exception_handler Thread.default_uncaught_exception_handler

(* Runtime_events *)

type Runtime_events.User.tag += Counter

let events () =
  let open Runtime_events in
  start ();
  pause ();
  resume ();
  let counter = User.register "manual.counter" Counter Type.int in
  let span = User.register "manual.span" Counter Type.span in
  let encode buffer text =
    Bytes.blit_string text 0 buffer 0 (String.length text);
    String.length text
  in
  let decode buffer length = Bytes.sub_string buffer 0 length in
  let text = User.register "manual.text" Counter (Type.register ~encode ~decode) in
  User.write counter 1;
  User.write span Begin;
  User.write span End;
  User.write text "text";
  User.write (User.register "manual.unit" Counter Type.unit) ();
  check "event" (User.name counter = "manual.counter" && User.tag counter = Counter);
  let cursor = create_cursor None in
  let callbacks =
    Callbacks.create
      ~runtime_begin:(fun _ _ phase -> print_string (runtime_phase_name phase))
      ~runtime_end:(fun _ _ phase -> print_string (runtime_phase_name phase))
      ~runtime_counter:(fun _ _ counter count -> Printf.printf "%s %d" (runtime_counter_name counter) count)
      ~alloc:(fun _ _ sizes -> print_int (Array.length sizes))
      ~lifecycle:(fun _ _ (_ : lifecycle) _ -> ())
      ~lost_events:(fun _ _ -> ())
      ()
    |> Callbacks.add_user_event Type.int (fun _ timestamp _ _ -> ignore (Timestamp.to_int64 timestamp))
  in
  check "no events" (read_poll cursor callbacks None = 0);
  free_cursor cursor;
  check "timestamp" (Timestamp.to_int64 (Timestamp.get_current ()) >= 0L);
  check "path" (path () = None);
  check "runtime_phase_name"
    (List.map runtime_phase_name [ EV_EXPLICIT_GC_SET; EV_MAJOR_SLICE; EV_COMPACT_RELEASE ]
    = [ "explicit_gc_set"; "major_slice"; "compaction_release" ]);
  check "runtime_counter_name"
    (List.map runtime_counter_name [ EV_C_FORCE_MINOR_ALLOC_SMALL; EV_C_MAJOR_WORK_COUNTER; EV_C_MAJOR_SLICE_BUDGET ]
    = [ "force_minor_alloc_small"; "major_work_counter"; "major_slice_budget" ]);
  check "lifecycle_name"
    (List.map lifecycle_name [ EV_RING_START; EV_DOMAIN_TERMINATE ] = [ "ring_start"; "domain_terminate" ])

(* Seq *)

let seqs () =
  let open Seq in
  let list = List.of_seq and up_to n = take n (ints 0) in
  let is_even n = n mod 2 = 0 in
  check "is_empty" (is_empty empty && not (is_empty (return 1)));
  check "uncons" (uncons empty = None && Option.map fst (uncons (ints 7)) = Some 7);
  check "length" (length (up_to 4) = 4 && length (singleton ()) = 1);
  let indices = ref [] in
  iteri (fun index x -> indices := (index, x) :: !indices) (up_to 2);
  check "iteri" (!indices = [ (1, 1); (0, 0) ]);
  check "fold_lefti" (fold_lefti (fun sum index x -> sum + (index * x)) 0 (up_to 4) = 14);
  check "for_all, exists" (for_all is_even (return 2) && exists is_even (up_to 2) && not (exists is_even (return 1)));
  check "find" (find (fun n -> n > 2) (ints 0) = Some 3 && find is_even (return 1) = None);
  check "find_index" (find_index (fun n -> n > 12) (ints 10) = Some 3);
  check "find_map" (find_map (fun n -> if n > 2 then Some (n * n) else None) (ints 0) = Some 9);
  check "find_mapi" (find_mapi (fun index n -> if index = n then None else Some n) (ints 1) = Some 1);
  let sum = ref 0 in
  iter2 (fun a b -> sum := !sum + (a * b)) (up_to 3) (ints 1);
  check "iter2" (!sum = 8);
  check "fold_left2" (fold_left2 (fun sum a b -> sum + (a * b)) 0 (up_to 3) (ints 1) = 8);
  check "for_all2, exists2" (for_all2 ( < ) (up_to 3) (ints 1) && not (exists2 ( > ) (up_to 3) (ints 1)));
  check "equal" (equal ( = ) (up_to 3) (up_to 3) && not (equal ( = ) (up_to 3) (up_to 4)));
  check "compare" (compare Int.compare (up_to 3) (up_to 4) = -1 && compare Int.compare (return 1) (up_to 2) = 1);
  check "init" (list (init 3 (fun n -> n * n)) = [ 0; 1; 4 ]);
  check "repeat, forever" (list (take 2 (repeat 'a')) = list (take 2 (forever (fun () -> 'a'))));
  check "cycle" (list (take 5 (cycle (up_to 2))) = [ 0; 1; 0; 1; 0 ] && is_empty (cycle empty));
  check "iterate" (list (take 4 (iterate (fun n -> 2 * n) 1)) = [ 1; 2; 4; 8 ]);
  check "mapi" (list (mapi ( * ) (ints 1 |> take 3)) = [ 0; 2; 6 ]);
  check "scan" (list (scan ( + ) 0 (up_to 4)) = [ 0; 0; 1; 3; 6 ]);
  check "take, drop" (list (drop 2 (up_to 4)) = [ 2; 3 ] && is_empty (drop 5 (up_to 4)));
  check "take, negative" (raises (Invalid_argument "Seq.take") (fun () -> take (-1) empty));
  check "take_while" (list (take_while (fun n -> n < 2) (ints 0)) = [ 0; 1 ]);
  check "drop_while" (list (drop_while (fun n -> n < 2) (up_to 4)) = [ 2; 3 ]);
  check "group" (list (map list (group ( = ) (List.to_seq [ 1; 1; 2; 1 ]))) = [ [ 1; 1 ]; [ 2 ]; [ 1 ] ]);
  let forced = ref 0 in
  let counted = memoize (map (fun n -> incr forced; n) (up_to 3)) in
  check "memoize" (list counted = list counted && !forced = 3);
  let ephemeral = once (up_to 2) in
  check "once" (list ephemeral = [ 0; 1 ] && raises Forced_twice (fun () -> list ephemeral));
  let rows = List.to_seq (List.map List.to_seq [ [ 1; 2; 3 ]; [ 4 ]; [ 5; 6 ] ]) in
  check "transpose" (list (map list (transpose rows)) = [ [ 1; 4; 5 ]; [ 2; 6 ]; [ 3 ] ]);
  check "zip" (list (zip (up_to 2) (forever (fun () -> 'x'))) = [ (0, 'x'); (1, 'x') ]);
  check "map2" (list (map2 ( + ) (up_to 3) (ints 10)) = [ 10; 12; 14 ]);
  check "interleave" (list (interleave (up_to 3) (return 9)) = [ 0; 9; 1; 2 ]);
  check "sorted_merge"
    (list (sorted_merge Int.compare (List.to_seq [ 1; 4 ]) (List.to_seq [ 2; 3; 5 ])) = [ 1; 2; 3; 4; 5 ]);
  check "product" (List.sort Stdlib.compare (list (product (up_to 2) (up_to 2))) = [ (0, 0); (0, 1); (1, 0); (1, 1) ]);
  check "product of endless ones" (exists (( = ) (3, 4)) (product (ints 0) (ints 0)));
  check "map_product" (list (map_product ( + ) (return 1) (up_to 2)) = [ 1; 2 ]);
  let left, right = unzip (zip (up_to 2) (ints 5)) in
  check "unzip" (list left = [ 0; 1 ] && list right = [ 5; 6 ] && list (fst (split (return (1, 2)))) = [ 1 ]);
  let even, odd = partition is_even (up_to 4) in
  check "partition" (list even = [ 0; 2 ] && list odd = [ 1; 3 ]);
  let left, right = partition_map (fun n -> if is_even n then Either.Left n else Right (string_of_int n)) (up_to 3) in
  check "partition_map" (list left = [ 0; 2 ] && list right = [ "1" ]);
  let next = to_dispenser (up_to 2) in
  check "dispensers" (list (of_dispenser next) = [ 0; 1 ] && next () = None)

(* In_channel, Out_channel, Filename, Scanf *)

let files () =
  let folder = Filename.temp_dir "manual" ".folder" in
  let inner = Stdlib.Filename.temp_dir ~temp_dir:folder ~perms:0o755 "a" "b" in
  check "temp_dir" (Sys.is_directory folder && Filename.dirname inner = folder && inner <> folder);
  let name = Filename.concat folder "file" in
  Out_channel.with_open_bin name (fun channel ->
      let open Out_channel in
      set_binary_mode channel true;
      output_string channel "one\n";
      output_char channel 't';
      output_byte channel (Char.code 'w');
      output_bytes channel (Bytes.of_string "o\n");
      output channel (Bytes.of_string "--three") 2 5;
      output_substring channel "four\n" 4 1;
      flush channel;
      check "Out_channel" (pos channel = 14L && length channel = 14L && not (isatty channel));
      check "Out_channel.is_binary_mode" (is_binary_mode channel);
      seek channel 0L;
      output_bigarray channel (Bigarray.Array1.of_array Bigarray.char Bigarray.c_layout [| 'x'; 'O'; 'x' |]) 1 1);
  Out_channel.flush_all ();
  In_channel.with_open_text name (fun channel ->
      let open In_channel in
      set_binary_mode channel true;
      check "is_binary_mode" (is_binary_mode channel);
      check "input_char" (input_char channel = Some 'O' && input_byte channel = Some (Char.code 'n'));
      check "input_line" (input_line channel = Some "e");
      check "really_input_string" (really_input_string channel 3 = Some "two");
      let buffer = Bytes.create 10 in
      check "input" (input channel buffer 0 1 = 1 && Bytes.get buffer 0 = '\n');
      check "really_input" (really_input channel buffer 0 3 = Some () && Bytes.sub_string buffer 0 3 = "thr");
      check "pos" (pos channel = 11L && length channel = 14L && not (isatty channel));
      check "the end"
    (really_input channel buffer 0 10 = None && input_line channel = None && input_char channel = None);
      seek channel 0L;
      check "input_all" (input_all channel = "One\ntwo\nthree\n");
      seek channel 4L;
      check "input_lines" (input_lines channel = [ "two"; "three" ]);
      seek channel 4L;
      check "fold_lines" (fold_lines (fun n line -> n + String.length line) 0 channel = 8);
      let bytes = Bigarray.(Array1.create char c_layout 10) in
      let ints = Bigarray.(Array1.create int8_unsigned c_layout 3) in
      seek channel 4L;
      check "input_bigarray"
        (input_bigarray channel bytes 2 3 = 3 && Bigarray.Array1.(get bytes 2 = 't' && get bytes 4 = 'o'));
      check "really_input_bigarray"
        (really_input_bigarray channel ints 0 3 = Some () && Bigarray.Array1.get ints 2 = Char.code 'h');
      check "really_input_bigarray, the end" (really_input_bigarray channel bytes 0 10 = None);
      check "input_bigarray, the end" (input_bigarray channel bytes 0 10 = 0 && Bigarray.Array1.get bytes 2 = 'e');
      check "no range of the bigarray"
        (List.for_all
           (fun (position, length) ->
             match input_bigarray channel bytes position length with _ -> false | exception Invalid_argument _ -> true)
           [ (-1, 2); (0, 11); (9, 2); (1, -1); (1, max_int) ]));
  Out_channel.with_open_gen [ Open_append ] 0o600 name (fun channel -> output_string channel "more");
  check "with_open_gen" (In_channel.(with_open_gen [ Open_rdonly; Open_binary ] 0 name input_all) <> "");
  check "with_open raises" (raises Exit (fun () -> Out_channel.with_open_text name (fun _ -> raise Exit)));
  let channel = Out_channel.open_gen [ Open_wronly ] 0 name in
  Out_channel.close channel;
  Out_channel.close_noerr (Out_channel.open_text name);
  Out_channel.close (Out_channel.open_bin name);
  let channel = In_channel.open_gen [ Open_rdonly ] 0 name in
  In_channel.close channel;
  In_channel.close_noerr (In_channel.open_text name);
  In_channel.close (In_channel.open_bin name);
  check "standard channels" In_channel.(stdin == Stdlib.stdin && Out_channel.(stdout != stderr));
  check "LargeFile" Unix.LargeFile.((stat name).st_size = 0L && (UnixLabels.LargeFile.stat folder).st_kind = S_DIR);
  check "is_regular_file" (Sys.is_regular_file name && not (Stdlib.Sys.is_regular_file folder));
  let many = Bigarray.(Array1.init char c_layout 100_000 (fun index -> Char.chr (index mod 251))) in
  let again = Bigarray.(Array1.create char c_layout 100_000) in
  Out_channel.with_open_bin name (fun channel -> Out_channel.output_bigarray channel many 0 100_000);
  let read = In_channel.(with_open_bin name (fun channel -> really_input_bigarray channel again 0 100_000)) in
  check "output_bigarray" (read = Some () && again = many);
  Sys.remove name;
  check "no file" (match Sys.is_regular_file name with _ -> false | exception Sys_error _ -> true);
  check "io_buffer_size" (Sys.io_buffer_size = 65536);
  Sys.rmdir inner;
  Sys.rmdir folder;
  check "sscanf_opt" (Scanf.sscanf_opt "1 2" "%d %d" ( + ) = Some 3 && Scanf.sscanf_opt "x" "%d" Fun.id = None);
  check "sscanf_opt, end" (Scanf.sscanf_opt "1" "%d %d" ( + ) = None);
  check "sscanf_opt, the receiver raises"
    (raises (Failure "2") (fun () -> Scanf.sscanf_opt "2" "%s" (fun text -> ignore (failwith text))));
  check "bscanf_opt" (Scanf.(bscanf_opt (Scanning.from_string "") "%c" Fun.id) = None);
  check "scanf_opt" (Scanf.scanf_opt "%d" Fun.id = Some 42)

(* Dynarray *)

let dynarrays () =
  let open Dynarray in
  let of_three () = of_list [ 1; 2; 3 ] and is_even n = n mod 2 = 0 in
  let refuses f = match f () with _ -> false | exception Invalid_argument _ -> true in
  let a = create () in
  check "empty" (is_empty a && length a = 0 && find_last a = None && refuses (fun () -> get_last a));
  for n = 0 to 9 do
    add_last a n
  done;
  set a 3 33;
  check "get, set" (get a 3 = 33 && get_last a = 9 && refuses (fun () -> get a 10) && refuses (fun () -> set a (-1) 0));
  check "pop_last" (pop_last a = 9 && pop_last_opt a = Some 8 && find_last a = Some 7);
  remove_last a;
  truncate a 2;
  check "truncate"
    (to_list a = [ 0; 1 ] && pop_last_opt (create ()) = None && raises Not_found (fun () -> pop_last (create ())));
  append_array a [| 2 |];
  append_list a [ 3 ];
  append a (of_seq (Seq.return 4));
  append_seq a (Seq.return 5);
  append_iter a List.iter [ 6 ];
  check "append" (to_array a = [| 0; 1; 2; 3; 4; 5; 6 |]);
  let b = copy a in
  clear a;
  check "copy" (is_empty a && length b = 7);
  ensure_capacity a 20;
  ensure_extra_capacity a 30;
  check "capacity" (capacity a >= 30);
  set_capacity b 3;
  fit_capacity a;
  check "fit_capacity" (capacity a = 0 && capacity b = 3 && to_list b = [ 0; 1; 2 ]);
  reset b;
  check "reset"
    (capacity b = 0 && equal ( = ) (make 2 'x') (init 2 (fun _ -> 'x'))
    && equal ( = ) (of_array [| 1 |]) (of_list [ 1 ]));
  let sum = ref 0 in
  iter (fun n -> sum := !sum + n) (of_three ());
  iteri (fun index n -> sum := !sum + (index * n)) (of_three ());
  check "iter" (!sum = 14 && refuses (fun () -> let c = of_three () in iter (add_last c) c));
  check "fold" (fold_left ( - ) 0 (of_three ()) = -6 && fold_right ( - ) (of_three ()) 0 = 2);
  check "map" (to_list (map succ (of_three ())) = [ 2; 3; 4 ] && to_list (mapi ( * ) (of_three ())) = [ 0; 2; 6 ]);
  check "filter" (to_list (filter is_even (of_three ())) = [ 2 ]
    && to_list (filter_map (fun n -> if is_even n then Some (-n) else None) (of_three ())) = [ -2 ]);
  check "find" (find_opt is_even (of_three ()) = Some 2 && find_index is_even (of_three ()) = Some 1
    && find_map (fun n -> if is_even n then Some 'e' else None) (of_three ()) = Some 'e'
    && find_mapi (fun index n -> if is_even n then Some index else None) (of_three ()) = Some 1);
  check "exists"
    (exists is_even (of_three ()) && not (for_all is_even (of_three ())) && mem 3 (of_three ())
    && not (memq 4 (of_three ())));
  check "compare"
    (compare Int.compare (of_three ()) (of_list [ 9 ]) > 0 && compare Int.compare (of_list [ 1 ]) (of_list [ 2 ]) < 0);
  check "to_seq_rev"
    (List.of_seq (to_seq_rev (of_three ())) = [ 3; 2; 1 ]
    && List.of_seq (to_seq_rev_reentrant (of_three ())) = [ 3; 2; 1 ]);
  let c = of_three () in
  let growing = Seq.map (fun n -> if n = 3 then add_last c 4; n) in
  check "to_seq_reentrant" (List.of_seq (growing (to_seq_reentrant c)) = [ 1; 2; 3; 4 ]);
  check "to_seq" (refuses (fun () -> List.of_seq (growing (to_seq c))));
  let d = of_three () in
  blit ~src:d ~src_pos:0 ~dst:d ~dst_pos:1 ~len:3;
  blit ~src:(of_three ()) ~src_pos:2 ~dst:d ~dst_pos:4 ~len:1;
  check "blit" (to_list d = [ 1; 1; 2; 3; 3 ]);
  check "blit, outside" (refuses (fun () -> blit ~src:d ~src_pos:4 ~dst:d ~dst_pos:0 ~len:2)
    && refuses (fun () -> blit ~src:d ~src_pos:0 ~dst:d ~dst_pos:6 ~len:1));
  let grown name f =
    let reason = "a length change from 3 to 6 occurred during iteration" in
    let grow () = let d = of_three () in f (fun n -> add_last d n) d in
    check name (raises (Invalid_argument (Printf.sprintf "Dynarray.%s: %s" name reason)) grow)
  in
  grown "iter" iter;
  grown "map" (fun f d -> ignore (map f d));
  grown "filter" (fun f d -> ignore (filter (fun n -> f n; true) d));
  grown "fold_right" (fun f d -> fold_right (fun n () -> f n) d ());
  grown "exists" (fun f d -> ignore (exists (fun n -> f n; false) d));
  grown "find_mapi" (fun f d -> ignore (find_mapi (fun _ n -> f n; None) d));
  check "cleared" (refuses (fun () -> let d = of_three () in iter (fun _ -> reset d) d))

(* List, Array, Map, Set, Queue, Stack, Fun, Type, Effect *)

module Names = Map.Make (String)
module Units = Map.Make (Unit)
module Numbers : Set.S with type elt = int = Set.Make (Int)

let containers () =
  let names = Names.of_list [ ("b", [ 2 ]); ("a", [ 1 ]) ] in
  let names = Names.add_to_list "c" 4 (Names.add_to_list "a" 0 names) in
  check "Map" (Names.to_list names = [ ("a", [ 0; 1 ]); ("b", [ 2 ]); ("c", [ 4 ]) ]);
  check "Set" (Numbers.to_list (Numbers.of_list [ 2; 1; 2 ]) = [ 1; 2 ]);
  (* From a library that was compiled without the flag. *)
  let theirs : int Stdlib__Map.Make(Stdlib__Unit).t = Units.of_list [ ((), 3) ] in
  check "the same maps" (Units.mem () theirs);
  let queue = Queue.of_seq (List.to_seq [ 1; 2 ]) and stack = Stack.of_seq (List.to_seq [ 1; 2 ]) in
  Queue.drop queue;
  Stack.drop stack;
  check "drop"
    (Queue.peek queue = 2 && Stack.top stack = 1 && raises Queue.Empty (fun () -> Queue.drop (Queue.create ())));
  check "Fun.compose" (Fun.compose succ (fun n -> 2 * n) 3 = 7)

type _ Effect.t += Ask : int Effect.t

let others () =
  let over n x = x > n in
  check "List.take"
    (List.take 2 [ 1; 2; 3 ] = [ 1; 2 ] && List.drop 2 [ 1; 2; 3 ] = [ 3 ] && List.take 5 [ 1 ] = [ 1 ]);
  check "List.take, negative" (raises (Invalid_argument "List.take") (fun () -> List.take (-1) [ 1 ]));
  check "List.drop, negative" (raises (Invalid_argument "List.drop") (fun () -> List.drop (-1) [ 1 ]));
  check "List.take_while" (List.take_while (( > ) 2) [ 1; 2 ] = [ 1 ] && List.drop_while (( > ) 2) [ 1; 2 ] = [ 2 ]);
  check "List.find_index" (List.find_index (over 1) [ 1; 2 ] = Some 1 && List.is_empty [] && not (List.is_empty [ 1 ]));
  check "List.find_mapi" (List.find_mapi (fun i x -> if x > 1 then Some (i, x) else None) [ 1; 2 ] = Some (1, 2));
  let array = [| 1; 2; 3 |] in
  Array.map_inplace succ array;
  Array.mapi_inplace ( * ) array;
  check "Array" (array = [| 0; 3; 8 |] && Array.find_index (over 3) array = Some 2);
  Array.shuffle ~rand:(fun n -> n - 1) array;
  check "Array.shuffle, nothing" (array = [| 0; 3; 8 |]);
  Array.shuffle ~rand:(fun _ -> 0) array;
  check "Array.shuffle" (array = [| 3; 8; 0 |]);
  Array.shuffle ~rand:Random.int array;
  check "Array.shuffle, all" (List.sort compare (Array.to_list array) = [ 0; 3; 8 ]);
  let array = [| 0; 3; 8 |] in
  check "Array.find_mapi" (Array.find_mapi (fun i x -> if x > i then Some x else None) array = Some 3);
  let int : int Type.Id.t = Type.Id.make () and other : int Type.Id.t = Type.Id.make () in
  (match Type.Id.provably_equal int int with
  | Some Type.Equal -> check "uid" (Type.Id.uid int <> Type.Id.uid other)
  | None -> check "provably_equal" false);
  check "provably different" (Option.is_none (Type.Id.provably_equal int other));
  match Stdlib.Effect.Deep.try_with Stdlib.Effect.perform Ask
      { effc = (fun (type a) (effect : a Effect.t) ->
          match effect with
          | Ask -> Some (fun (k : (a, _) Effect.Deep.continuation) -> Effect.Deep.continue k 1)
          | _ -> None) } with
  | answer -> check "effect" (answer = 1)
  | exception Failure reason -> print_endline reason

(* Hashes, Unicode, Random, Format, Float.Array *)

module Texts = Hashtbl.Make (String)
module Seeded = Hashtbl.MakeSeeded (Int)

let hashes () =
  let as_stdlib what x hash seeded_hash =
    check (what ^ ".hash") (hash x = Stdlib.Hashtbl.hash x && seeded_hash 5 x = Stdlib.Hashtbl.seeded_hash 5 x)
  in
  as_stdlib "Bool" true Bool.hash Bool.seeded_hash;
  as_stdlib "Char" 'c' Char.hash Char.seeded_hash;
  as_stdlib "Float" 0.5 Float.hash Float.seeded_hash;
  as_stdlib "Int" 3 Stdlib.Int.hash Int.seeded_hash;
  as_stdlib "Int32" 3l Int32.hash Int32.seeded_hash;
  as_stdlib "Int64" 3L Int64.hash Int64.seeded_hash;
  as_stdlib "Nativeint" 3n Nativeint.hash Nativeint.seeded_hash;
  as_stdlib "String" "text" String.hash StringLabels.seeded_hash;
  check "Uchar.seeded_hash" (Uchar.seeded_hash 5 Uchar.rep = Hashtbl.seeded_hash 5 Uchar.rep);
  let table = Texts.create 1 and seeded = Seeded.create ~random:true 1 in
  Texts.add table "key" 1;
  Seeded.add seeded 2 "two";
  check "Hashtbl.Make" (Texts.find table "key" = 1 && Seeded.find seeded 2 = "two")

let unicode () =
  (* The characters as the function decodes them, each with its bytes; -1 in place of what is not valid. *)
  let decoded get text =
    let rec from index =
      if index >= String.length text then []
      else
        let decode = get text index in
        let length = Uchar.utf_decode_length decode in
        let code = Uchar.to_int (Uchar.utf_decode_uchar decode) in
        (if Uchar.utf_decode_is_valid decode then code else if code = 0xFFFD then -1 else -2) :: length
        :: from (index + length)
    in
    from 0
  in
  let utf_8 = decoded String.get_utf_8_uchar in
  check "UTF-8" (utf_8 "a\u{E9}\u{20AC}\u{1F42B}" = [ 0x61; 1; 0xE9; 2; 0x20AC; 3; 0x1F42B; 4 ]);
  check "UTF-8, not valid" (utf_8 "\x80\xC1a\xF5" = [ -1; 1; -1; 1; 0x61; 1; -1; 1 ]);
  check "UTF-8, cut" (utf_8 "\xE2\x82a\xF0\x9F\x90" = [ -1; 2; 0x61; 1; -1; 3 ]);
  check "UTF-8, too long" (utf_8 "\xE0\x9F\xBF\xF0\x8F" = [ -1; 1; -1; 1; -1; 1; -1; 1; -1; 1 ]);
  check "UTF-8, surrogates" (utf_8 "\xED\xA0\x80\xF4\x90" = [ -1; 1; -1; 1; -1; 1; -1; 1; -1; 1 ]);
  let utf_16 = decoded String.get_utf_16be_uchar in
  check "UTF-16" (utf_16 "\x00a\x20\xAC\xD8\x3D\xDC\x2B" = [ 0x61; 2; 0x20AC; 2; 0x1F42B; 4 ]);
  check "UTF-16, not valid" (utf_16 "\xDC\x00\x00a\x00" = [ -1; 2; 0x61; 2; -1; 1 ]);
  let utf_16le = decoded StringLabels.get_utf_16le_uchar in
  check "UTF-16, little" (utf_16le "a\x00\x3D\xD8\x2B\xDC" = [ 0x61; 2; 0x1F42B; 4 ]);
  let written set is_valid get =
    let bytes = Bytes.make 10 '.' and camel = Uchar.of_int 0x1F42B in
    check "not enough bytes" (set bytes 9 camel = 0 && Bytes.get bytes 9 = '.');
    check "no place" (match set bytes (-1) camel with _ -> false | exception Invalid_argument _ -> true);
    check "no place behind" (match set bytes 10 Uchar.min with _ -> false | exception Invalid_argument _ -> true);
    check "no byte to get" (match get bytes 10 with _ -> false | exception Invalid_argument _ -> true);
    let write index code = index + set bytes index (Uchar.of_int code) in
    let text = Bytes.sub bytes 0 (List.fold_left write 0 [ 0x41; 0x20AC; 0x1F42B ]) in
    check "set_utf, is_valid_utf" (is_valid text && not (is_valid (Bytes.sub text 0 (Bytes.length text - 1))));
    decoded (fun text -> get (Bytes.of_string text)) (Bytes.to_string text)
  in
  check "set_utf_8" (written Bytes.set_utf_8_uchar Bytes.is_valid_utf_8 Bytes.get_utf_8_uchar
    = [ 0x41; 1; 0x20AC; 3; 0x1F42B; 4 ]);
  check "set_utf_16be" (written Bytes.set_utf_16be_uchar Bytes.is_valid_utf_16be Bytes.get_utf_16be_uchar
    = [ 0x41; 2; 0x20AC; 2; 0x1F42B; 4 ]);
  check "set_utf_16le" (written BytesLabels.set_utf_16le_uchar Bytes.is_valid_utf_16le Bytes.get_utf_16le_uchar
    = [ 0x41; 2; 0x20AC; 2; 0x1F42B; 4 ]);
  let no_place set =
    match set Bytes.empty (-1) Uchar.max with _ -> false | exception Invalid_argument _ -> true
  in
  check "no place before" (no_place Bytes.set_utf_16be_uchar && no_place Bytes.set_utf_16le_uchar);
  check "is_valid_utf" (String.is_valid_utf_8 "\u{E9}" && not (String.is_valid_utf_8 "\xE9")
    && String.is_valid_utf_16be "" && not (String.is_valid_utf_16le "a"));
  check "byte_length" (Uchar.(utf_8_byte_length max = 4 && utf_16_byte_length max = 4 && utf_8_byte_length min = 1));
  check "utf_decode" Uchar.(utf_decode_length (utf_decode 4 max) = 4 && utf_decode_uchar (utf_decode_invalid 2) = rep)

let texts () =
  let array = Format.(asprintf "%a" (pp_print_array ~pp_sep:(fun f () -> pp_print_string f ", ") pp_print_int)) in
  check "pp_print_array" (array [| 1; 2 |] = "1, 2" && array [||] = "");
  check "pp_print_iter" (Format.(asprintf "@[<h>%a@]" (pp_print_iter List.iter pp_print_int)) [ 1; 2 ] = "12");
  check "pp_print_nothing" (Format.(asprintf "%a" pp_print_nothing () = "" && pp_infinity > 1_000_000_000));
  let written = Buffer.create 10 in
  let key = Format.make_synchronized_formatter (Buffer.add_substring written) ignore in
  let formatter () = Domain.DLS.get key in
  let domain = Domain.spawn (fun () -> Format.fprintf (formatter ()) "domain") in
  Format.fprintf (formatter ()) "main";
  Domain.join domain;
  Format.pp_print_flush (formatter ()) ();
  check "make_synchronized_formatter" (Buffer.contents written = "domainmain");
  Format.fprintf (Domain.DLS.get (Format.synchronized_formatter_of_out_channel stdout)) "as in the manual, too@."

let numbers () =
  let several count what is_right = List.iter (fun _ -> check what (is_right ())) (List.init count Fun.id) in
  let state = Random.State.make [| 1 |] in
  several 100 "int_in_range" (fun () ->
      let n = Random.int_in_range ~min:(-3) ~max:3 and m = Random.State.int_in_range state ~min:7 ~max:7 in
      -3 <= n && n <= 3 && m = 7);
  several 100 "int_in_range, all" (fun () ->
      ignore (Random.int_in_range ~min:min_int ~max:max_int);
      Random.State.int_in_range state ~min:(max_int - 1) ~max:max_int >= max_int - 1);
  several 100 "int32_in_range" (fun () ->
      ignore (Random.int32_in_range ~min:Int32.min_int ~max:Int32.max_int);
      Random.State.int32_in_range state ~min:Int32.min_int ~max:(Int32.succ Int32.min_int) <= Int32.succ Int32.min_int);
  several 100 "int64_in_range" (fun () ->
      ignore (Random.State.int64_in_range state ~min:Int64.min_int ~max:Int64.max_int);
      Random.int64_in_range ~min:(-1L) ~max:Int64.max_int >= -1L && Random.int64_in_range ~min:3L ~max:3L = 3L);
  several 100 "nativeint_in_range" (fun () ->
      Random.nativeint_in_range ~min:0n ~max:1n <= 1n
      && Random.State.nativeint_in_range state ~min:Nativeint.min_int ~max:0n <= 0n);
  check "int_in_range, none"
    (raises (Invalid_argument "Random.int_in_range") (fun () -> Random.int_in_range ~min:1 ~max:0));
  (* Every bit is sometimes set, and sometimes not. *)
  let bits draw or_ and_ =
    let drawn = List.init 200 (fun _ -> draw ()) in
    (List.fold_left or_ (List.hd drawn) drawn, List.fold_left and_ (List.hd drawn) drawn)
  in
  check "bits32" (bits Random.bits32 Int32.logor Int32.logand = (-1l, 0l));
  check "bits64" (bits Random.bits64 Int64.logor Int64.logand = (-1L, 0L));
  check "nativebits" (bits Random.nativebits Nativeint.logor Nativeint.logand = (-1n, 0n));
  check "State.bits32" (bits (fun () -> Random.State.bits32 state) Int32.logor Int32.logand = (-1l, 0l));
  check "State.bits64" (bits (fun () -> Random.State.bits64 state) Int64.logor Int64.logand = (-1L, 0L));
  check "State.nativebits"
    (bits (fun () -> Random.State.nativebits state) Nativeint.logor Nativeint.logand = (-1n, 0n));
  let drawn state = List.init 5 (fun _ -> Random.State.bits state) in
  let split = Random.State.split state in
  let again = Random.State.copy split in
  check "split" (drawn again = drawn split && drawn split <> drawn (Random.split ()));
  let text = Random.State.to_binary_string state in
  check "to_binary_string" (drawn (Random.State.of_binary_string text) = drawn state);
  let refused text = match Random.State.of_binary_string text with _ -> false | exception Failure _ -> true in
  let other index = String.mapi (fun at c -> if at = index then '\xFF' else c) text in
  let places = List.init (String.length text) Fun.id in
  check "of_binary_string"
    (List.for_all (fun length -> refused (String.sub text 0 length)) places && refused (text ^ " "));
  let is_state index = match Random.State.(bits (of_binary_string (other index))) with
    | _ -> true
    | exception Failure _ -> false
  in
  check "of_binary_string, other bytes" (List.exists is_state places && not (List.for_all is_state places));
  let floats = Float.Array.of_list [ 1.; 2.; 3. ] in
  Float.Array.map_inplace (fun x -> x *. 2.) floats;
  Float.Array.mapi_inplace (fun i x -> x +. float_of_int i) floats;
  check "Float.Array.find" (Float.Array.to_list floats = [ 2.; 5.; 8. ]
    && Float.Array.find_opt (( < ) 2.) floats = Some 5. && Float.Array.find_index (( < ) 9.) floats = None
    && Float.Array.find_map (fun x -> if x > 5. then Some 'x' else None) floats = Some 'x'
    && Float.Array.find_mapi (fun i x -> if i = 1 then Some x else None) floats = Some 5.);
  Float.Array.shuffle ~rand:(fun _ -> 0) floats;
  check "Float.Array.shuffle" (Float.Array.to_list floats = [ 5.; 8.; 2. ])

(* Labels *)

let labels () =
  let open StdLabels in
  check "ListLabels" (List.take 1 [ 1; 2 ] = [ 1 ] && List.drop 1 [ 1; 2 ] = [ 2 ] && List.is_empty []
    && List.take_while ~f:(( > ) 2) [ 1; 2 ] = [ 1 ] && List.drop_while ~f:(( > ) 2) [ 1; 2 ] = [ 2 ]
    && List.find_index ~f:(( = ) 2) [ 1; 2 ] = Some 1
    && List.find_mapi ~f:(fun i x -> if i = 1 then Some x else None) [ 'a'; 'b' ] = Some 'b');
  let array = [| 1; 2; 3 |] in
  Array.map_inplace ~f:succ array;
  Array.mapi_inplace ~f:( * ) array;
  check "ArrayLabels" (array = [| 0; 3; 8 |] && Array.find_index ~f:(( = ) 3) array = Some 1
    && Array.find_mapi ~f:(fun i x -> if i = 2 then Some x else None) array = Some 8
    && Array.init_matrix ~dimx:2 ~dimy:1 ~f:(fun i j -> (i, j)) = [| [| (0, 0) |]; [| (1, 0) |] |]);
  Array.shuffle ~rand:(fun _ -> 0) array;
  check "ArrayLabels.shuffle" (array = [| 3; 8; 0 |]);
  let floats = Float.ArrayLabels.of_list [ 1.; 2. ] in
  Float.ArrayLabels.map_inplace ~f:(( *. ) 2.) floats;
  Float.ArrayLabels.mapi_inplace ~f:(fun i x -> x +. float_of_int i) floats;
  Float.ArrayLabels.shuffle ~rand:(fun _ -> 0) floats;
  check "Float.ArrayLabels" (Float.Array.to_list floats = [ 5.; 2. ]
    && Float.ArrayLabels.find_opt ~f:(( > ) 5.) floats = Some 2.
    && Float.ArrayLabels.find_index ~f:(( > ) 5.) floats = Some 1
    && Float.ArrayLabels.find_map ~f:(fun x -> if x < 3. then Some x else None) floats = Some 2.
    && Float.ArrayLabels.find_mapi ~f:(fun i x -> if i = 1 then Some x else None) floats = Some 2.);
  let rows = Float.ArrayLabels.make_matrix ~dimx:2 ~dimy:2 1. in
  Float.Array.set rows.(0) 0 2.;
  let other = Float.ArrayLabels.init_matrix ~dimx:2 ~dimy:2 ~f:(fun i j -> if i + j = 0 then 2. else 1.) in
  check "matrices of floats" (rows = other);
  let module Names = MoreLabels.Map.Make (String) in
  let names = Names.add_to_list ~key:"b" ~data:2 (Names.of_list [ ("b", [ 1 ]); ("a", []) ]) in
  check "MoreLabels.Map" (Names.to_list names = [ ("a", []); ("b", [ 2; 1 ]) ]);
  let module Numbers = MoreLabels.Set.Make (Int) in
  check "MoreLabels.Set" (Numbers.to_list (Numbers.of_list [ 2; 1 ]) = [ 1; 2 ]);
  let module Table = MoreLabels.Hashtbl.MakeSeeded (String) in
  let table = Table.create ~random:true 1 in
  Table.add table ~key:"a" ~data:1;
  Table.replace table ~key:"a" ~data:2;
  Table.filter_map_inplace table ~f:(fun ~key:_ ~data -> Some (data + 1));
  let seen = ref 0 in
  Table.iter table ~f:(fun ~key:_ ~data -> seen := data);
  check "MoreLabels.Hashtbl" (!seen = 3 && Table.fold table ~init:1 ~f:(fun ~key:_ ~data sum -> data + sum) = 4)

(* Digest: the hashes are those of RFC 7693, and of b2sum *)

let digests () =
  let is digest expected = String.equal (Digest.BLAKE512.to_hex digest) expected in
  check "BLAKE512"
    (is (Digest.BLAKE512.string "abc")
       "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d17d87c5392aab792dc252d5de4533cc9518d3\
        8aa8dbf1925ab92386edd4009923");
  let long = String.init 300 (fun i -> Char.chr (i land 0xFF)) in
  check "BLAKE256" (Digest.BLAKE256.(to_hex (string long))
    = "3a486e3fe3ee414853000269ac020030aeef748cb05cd62ba85939ec298ef25c");
  let module B = Digest.BLAKE128 in
  check "parts" (B.substring long 1 128 = B.string (String.sub long 1 128)
    && B.subbytes (Bytes.of_string long) 1 128 = B.bytes (Bytes.of_string (String.sub long 1 128)));
  check "no part" (raises (Invalid_argument "Digest.substring") (fun () -> B.substring "abc" 2 2));
  check "of_hex" (B.of_hex (B.to_hex (B.string long)) = B.string long && B.hash_length = 16
    && raises (Invalid_argument "Digest.of_hex") (fun () -> B.of_hex "0"));
  let name = Filename.temp_file "manual" ".digest" in
  Out_channel.with_open_bin name (fun channel -> output_string channel long; B.output channel (B.string "abc"));
  let channel, rest = In_channel.with_open_bin name (fun channel ->
    let first = B.channel channel 300 in
    (first, B.input channel))
  in
  check "channel" (channel = B.string long && rest = B.string "abc" && B.compare rest rest = 0 && B.equal rest rest);
  check "channel, end" (raises End_of_file (fun () -> In_channel.with_open_bin name (fun c -> B.channel c 1000)));
  check "file" (B.file name = B.string (long ^ rest) && Digest.MD5.file name = Digest.file name);
  check "Digest.of_hex" (Digest.of_hex (Digest.to_hex (Digest.string "a")) = Digest.MD5.string "a");
  Sys.remove name

let rarely_used () =
  let key = ref 1 and other = ref 1 in
  let one = Ephemeron.K1.make key 'x' and two = Ephemeron.K2.make key other 'x' in
  let both = Ephemeron.Kn.make [| key; other |] 'x' in
  check "Ephemeron" (Ephemeron.K1.query one key = Some 'x' && Ephemeron.K1.query one other = None
    && Ephemeron.K2.query two key other = Some 'x' && Ephemeron.K2.query two other key = None
    && Ephemeron.Kn.query both [| key; other |] = Some 'x' && Ephemeron.Kn.query both [| other; key |] = None);
  check "nan" (Float.is_nan Float.quiet_nan && Float.is_nan Float.signaling_nan
    && Int64.bits_of_float Float.quiet_nan <> Int64.bits_of_float Float.signaling_nan);
  check "string_of_extension_constructor" (Printexc.string_of_extension_constructor (Obj.repr Exit) = "Stdlib.Exit");
  let release = Sys.ocaml_release in
  check "ocaml_release" (not Sys.development_version
    && String.starts_with ~prefix:(Printf.sprintf "%d.%d.%d" release.major release.minor release.patchlevel)
         Sys.ocaml_version);
  let caught = ref false in
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> caught := true));
  Unix.kill (Unix.getpid ()) Sys.sigusr1;
  Sys.poll_actions ();
  check "poll_actions" !caught;
  let shown = Format.asprintf "%t" (fun formatter ->
    Format.pp_print_substring ~pos:1 ~len:2 formatter "abcd";
    Format.pp_print_substring_as ~pos:0 ~len:1 formatter 9 "xyz")
  in
  check "pp_print_substring" (shown = "bcx" && Format.get_std_formatter () == Format.std_formatter);
  let input, output = Unix.pipe () in
  let sent = Bigarray.(Array1.of_array char c_layout [| 'a'; 'b'; 'c'; 'd' |]) in
  let received = Bigarray.(Array1.create char c_layout 4) in
  let written = Unix.write_bigarray output sent 1 2 in
  let written = written + Unix.single_write_bigarray output sent 0 1 in
  let count = UnixLabels.read_bigarray input ~buf:received ~pos:1 ~len:3 in
  check "read_bigarray" (written = 3 && count = 3 && Bigarray.Array1.get received 3 = 'a'
    && Bigarray.Array1.get received 1 = 'b');
  check "read_bigarray, outside"
    (raises (Invalid_argument "Unix.read_bigarray") (fun () -> Unix.read_bigarray input received 2 3));
  List.iter Unix.close [ input; output ]

external refuse : string -> unit = "manual_refuse"
external without_lock : unit -> unit = "manual_without_lock"
external error_code : Unix.error -> Unix.error = "manual_error_code"

let c_names () =
  check "caml_uerror" (raises (Unix.Unix_error (ENOENT, "manual", "path")) (fun () -> refuse "path"));
  without_lock ();
  check "caml_unix_code_of_unix_error" (error_code EAGAIN = EAGAIN)

let () =
  List.iter
    (fun part -> part ())
    [ domains; synchronisation; events; seqs; files; dynarrays; containers; others; hashes; unicode; texts; numbers;
      labels; digests; rarely_used; c_names ];
  print_endline (if !failures = 0 then "as in the manual" else "not as in the manual")
(* SPDX-License-Identifier: MIT *)
