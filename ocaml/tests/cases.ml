(* With HAFT_TEST_CASES in the environment, handlers are as the effect syntax makes them: the runtime does not ask
   for a clause. `guards`: as those whose cases have guards, which may have performed. *)
let cases = Sys.getenv_opt "HAFT_TEST_CASES"

module Effect = struct
  include Effect

  module Deep = struct
    include Deep

    let decline effect k =
      if cases = Some "guards" then Haft__syntax.decline_after_guards effect k else Haft__syntax.decline effect k

    let match_with f x (handler : _ handler) =
      if cases = None then match_with f x handler
      else
        Haft__syntax.match_with f x
          {
            Haft__syntax.retc = handler.retc;
            exnc = handler.exnc;
            effc =
              (fun effect k ->
                match handler.effc effect with
                | Some clause -> clause k
                | None -> decline effect k);
          }

    let try_with f x (handler : _ effect_handler) =
      match_with f x { retc = Fun.id; exnc = Haft__syntax.reraise; effc = handler.effc }
  end
end
(* SPDX-License-Identifier: MIT *)
