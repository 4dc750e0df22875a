module haft/bench

go 1.19
