let f = function effect A, k -> 1
