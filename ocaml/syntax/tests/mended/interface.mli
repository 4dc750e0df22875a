effect A : string ->
val x : int
val y : 
module M : sig
  val a : 
  val b : t
end
