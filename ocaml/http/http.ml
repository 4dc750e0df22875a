(* SPDX-License-Identifier: MIT *)
include Haft_http
