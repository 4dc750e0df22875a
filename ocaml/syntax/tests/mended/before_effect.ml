(* SPDX-License-Identifier: MIT *)
module M = struct
  let a =
  effect E : int
end
