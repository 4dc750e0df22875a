type Runtime_events.User.tag += Job

let event = Runtime_events.User.register "jobs.started" Job Runtime_events.Type.int

external refuse : string -> unit = "jobs_refuse"

let run jobs =
  let start index job =
    Runtime_events.User.write event index;
    Domain.spawn job
  in
  List.map Domain.join (List.mapi start jobs)
(* SPDX-License-Identifier: MIT *)
