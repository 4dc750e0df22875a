(* SPDX-License-Identifier: MIT *)
type _ Effect.t += Unsafe_clone : 'a Effect.t

let unsafe_clone _ = Effect.perform Unsafe_clone
