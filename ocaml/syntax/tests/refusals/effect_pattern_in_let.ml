let (effect A, k) = 1
