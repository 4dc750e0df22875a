effect A : int
val f : effect B : int
