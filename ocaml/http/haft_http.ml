(* SPDX-License-Identifier: MIT *)
include Haft_http__values
include Haft_http__request
include Haft_http__websocket
include Haft_http__response
include Haft_http__serving
include Haft_http__routes
include Haft_http__sessions
include Haft_http__client
