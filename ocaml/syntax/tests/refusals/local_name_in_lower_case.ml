let f x = let effect [@ocaml.doc "local"] ask : int in x
