(* SPDX-License-Identifier: MIT *)
(** {!Haft_http}, by a shorter name. A program that is also linked with a library whose module is [Http], such as
    cohttp's, uses the long one. *)

include module type of struct
  include Haft_http
end
