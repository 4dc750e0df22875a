let () = exit (Loops.run Sys.argv)
