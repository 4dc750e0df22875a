#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the web server of libhaft-http and its peers, in turn, and writes the report.

    bench/http/run.py [--build DIR] [--repeats N]   all figures: results.json, and report.md and the
                                                    table of README.md, made of it
    bench/http/run.py --only WORK...                some of them; the others stay as they were
    bench/http/run.py --pages                       the pages alone
    bench/http/run.py --check                       whether they are what results.json makes
    bench/http/run.py --quick                       little of everything once, without peers that are built
                                                    here; writes nothing

Go's and Rust's servers are built here from their sources, in DIR/http/peers, Boost.Beast's with the benchmarks; nginx is
the system's, or the program that HAFT_NGINX names. One that is missing is left out. One server at a time, on the second
processor; the load is on the first.
"""

import contextlib
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import measuring  # noqa: E402
import plot  # noqa: E402

WORKS = ["load", "latency", "tails", "rising", "idle", "middleware", "recorded", "http2", "tls", "tls_idle", "json"]
LOOP = "epoll loop"
CONNECTIONS = [64, 1000]
SAME_RATE = 20000  # requests a second, at which the latencies of all are measured, too
TAILS = 1000  # connections, at which the tails of OCaml's servers are measured
IDLE = [1000, 10000, 19000]
TLS_IDLE = [300]
# The load that is offered, as shares of the most that a server answers; and the most repeats, since there are so many.
SHARES = [0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0]
MOST_RISING_REPEATS = 3
# The servers that can have two threads, and the environment that asks for them.
TWO_THREADS = {"Haft, epoll": {}, "Haft, io_uring": {}, "Go": {"GOMAXPROCS": "2"}}
MOST_IDLE = 5  # KiB
MOST_TLS_IDLE = 6  # KiB beside what OpenSSL holds
OPENSSL = "OpenSSL alone"
MOST_MIDDLEWARE = 100  # ns
MOST_LOST = 10  # per cent of the requests a second, while a run is recorded
MOST_HTTP2 = 0.8  # of nghttpd's processor time
# The questions to a service in JSON, and its data.
ASKED = {"one entry": "/todo/7", "all 20 entries": "/todo"}
TODO = ("create table todo (id integer primary key, what text not null); insert into todo values " +
        ", ".join(f"({number}, 'entry {number}')" for number in range(1, 21)) + ";")
# By which figure (1: microseconds a request; 2: of these in user mode) the better of Haft's two back ends may be how many
# times a peer's, with 64 connections and with 1,000.
LIMITS = [(LOOP, 1, 1.2, 1.1), ("may_minihttp", 1, 0.93, 0.93), ("may_minihttp", 2, 1.0, 1.0),
          ("hyper", 1, 0.83, 0.9), ("hyper", 2, 0.6, 0.6), ("nginx", 1, 0.55, 0.55), ("Go", 1, 0.45, 0.45)]
HAFT = ("Haft, epoll", "Haft, io_uring")


# ---- Servers ----


def nginx_path():
    return os.environ.get("HAFT_NGINX") or shutil.which("nginx") or shutil.which("/usr/sbin/nginx")


def nginx_command(nginx, folder):
    """Makes its configuration for a port, which is then its command."""
    def command(port):
        folder.mkdir(parents=True, exist_ok=True)
        text = (HERE / "nginx.conf").read_text(encoding="utf-8")
        for name, value in (("PORT", port), ("FOLDER", folder), ("BODY", "x" * 1024)):
            text = text.replace(name, str(value))
        (folder / "nginx.conf").write_text(text, encoding="utf-8")
        return [nginx, "-p", folder, "-c", folder / "nginx.conf"]
    return command


def program(path):
    return lambda port: [path, port]


def servers(build, builds=measuring.builds):
    """Each server's command for a port, and its environment; `builds` makes those that are built here."""
    here, peers = build / "http", build / "http" / "peers"
    found = {LOOP: (lambda port: [], {})}
    if (here / "haft").exists():
        found["Haft, epoll"] = (program(here / "haft"), {"HAFT_IO_BACKEND": "epoll"})
        found["Haft, io_uring"] = (program(here / "haft"), {"HAFT_IO_BACKEND": "io_uring"})
        found["Haft C++, io_uring"] = (program(here / "haft_cpp"), {"HAFT_IO_BACKEND": "io_uring"})
    if (here / "ocaml_server").exists():
        found["Haft OCaml, epoll"] = (program(here / "ocaml_server"), {"HAFT_IO_BACKEND": "epoll"})
        found["Haft OCaml, io_uring"] = (program(here / "ocaml_server"), {"HAFT_IO_BACKEND": "io_uring"})
    if (here / "ocaml_cohttp").exists():
        found["cohttp-lwt-unix"] = (program(here / "ocaml_cohttp"), {})
    environment = {"CARGO_TARGET_DIR": str(peers / "rust")}
    if builds(["cargo", "build", "--release", "--quiet"], HERE / "rust", environment):
        found["may_minihttp"] = (program(peers / "rust" / "release" / "may"), {})
        found["hyper"] = (program(peers / "rust" / "release" / "hyper"), {})
    if (here / "beast").exists():
        found["Boost.Beast"] = (program(here / "beast"), {})
    if nginx_path():
        found["nginx"] = (nginx_command(nginx_path(), peers / "nginx"), {})
    if builds(["go", "build", "-o", peers / "go" / "server", "."], HERE / "go"):
        found["Go"] = (program(peers / "go" / "server"), {})
    return found


def versions(found):
    """The machine and the versions on which the figures depend."""
    manifest = (HERE / "rust" / "Cargo.toml").read_text(encoding="utf-8")
    crate = {name: re.search(rf'^{name} = .*?"=([^"]*)"', manifest, re.MULTILINE)[1]
             for name in ("hyper", "tokio", "may", "may_minihttp")}
    header = pathlib.Path("/usr/include/boost/version.hpp")
    boost = re.search(r'BOOST_LIB_VERSION "(.*)"', header.read_text(encoding="utf-8")) if header.exists() else None
    said = subprocess.run([nginx_path(), "-v"], stderr=subprocess.PIPE, text=True).stderr if "nginx" in found else ""
    known = {"may_minihttp": f"{crate['may_minihttp']} on may {crate['may']}",
             "hyper": f"{crate['hyper']} on Tokio {crate['tokio']}",
             "Boost.Beast": f"of Boost {boost[1].replace('_', '.')}" if boost else "",
             "nginx": said.strip().rpartition("/")[2],
             "cohttp-lwt-unix": measuring.first_line("ocamlfind", "query", "-format", "%v", "cohttp-lwt-unix"),
             "Go": measuring.first_line("go", "version").removeprefix("go version go").split(" ")[0]}
    parts = [f"{name} {version}" if name in found else f"{name} is missing" for name, version in known.items()]
    return ", ".join([f"{platform.system()} {platform.release().split('-')[0]}", measuring.first_line("cc", "--version"), *parts])


# ---- Measuring ----


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def loaded(build, server, mode, connections, seconds, path=""):
    """The output of load; None if it fails."""
    command, environment = server
    port = free_port()
    text = measuring.measured([build / "http" / "load", mode, f"{port}{path}", connections, seconds, *command(port)],
                              os.cpu_count(), environment)
    return None if text is None else [float(word) for word in text.split()]


def measure_load(build, found, repeats, seconds):
    """Requests a second, microseconds a request, and of these in user mode, which has a run of its own."""
    def run(server, connections):
        whole = loaded(build, server, "full", connections, seconds)
        in_user_mode = loaded(build, server, "samples", connections, seconds)
        return None if whole is None or in_user_mode is None else [*whole[:2], in_user_mode[0]]
    return {str(connections): measuring.series({name: lambda server=server, connections=connections: run(server, connections)
                                                for name, server in found.items()}, repeats)
            for connections in CONNECTIONS}


def measure_latency(build, found, repeats, seconds, connections=64):
    """At two thirds of what the server answered before, and at a rate that is the same for all: requests a second, three
    percentiles in microseconds, and the usual 99th (load.c)."""
    def run(server):
        most = loaded(build, server, "full", connections, seconds)
        own = None if most is None else loaded(build, server, most[0] * 2 / 3, connections, seconds)
        same = None if own is None else loaded(build, server, SAME_RATE, connections, seconds)
        return None if same is None else [*own, *same]
    return measuring.series({name: lambda server=server: run(server) for name, server in found.items()}, repeats)


def measure_tails(build, found, repeats, seconds):
    """The same for OCaml's servers, Go's and Haft's in C++, with many connections, as in figure 4 of the paper."""
    chosen = {name: server for name, server in found.items()
              if "OCaml" in name or name in ("Haft C++, io_uring", "cohttp-lwt-unix", "Go")}
    return {"load_average": round(os.getloadavg()[0], 1), "machine": machine(), "date": time.strftime("%Y-%m-%d"),
            "latency": measure_latency(build, chosen, repeats, seconds, TAILS)}


def machine():
    return f"{measuring.processor()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}"


def measure_rising(build, found, repeats, seconds, shares):
    """By threads and server, for each share: requests a second that were offered, that were answered, and three percentiles."""
    def run(server):
        most = loaded(build, server, "full", 64, seconds)
        if most is None:
            return None
        points = [(most[0] * share, loaded(build, server, most[0] * share, 64, seconds)) for share in shares]
        return None if any(point is None for _, point in points) else [[offered, *point] for offered, point in points]

    def figures(chosen):
        runs = measuring.series({name: lambda server=server: run(server) for name, server in chosen.items()},
                                min(repeats, MOST_RISING_REPEATS))
        return {name: [[statistics.median(values) for values in zip(*points)] for points in zip(*turns)]
                for name, turns in runs.items() if turns}

    on_two = {name: (command, {**environment, **TWO_THREADS[name], "THREADS": "2"})
              for name, (command, environment) in found.items() if name in TWO_THREADS}
    return {"1": figures({name: server for name, server in found.items() if name != "Haft C++, io_uring"}),
            "2": figures(on_two)}


def measure_idle(build, found, counts):
    return {str(count): {name: loaded(build, server, "idle", count, 0) or [] for name, server in found.items() if name != LOOP}
            for count in counts}


def measure_middleware(build, repeats, requests):
    """Ten figures each time, in pairs (middleware.cpp)."""
    path = build / "http" / "middleware"
    texts = [measuring.measured([path, requests], 1) for _ in range(repeats if path.exists() else 0)]
    return [[float(word) for word in text.split()] for text in texts if text is not None]


def measure_recorded(build, found, repeats, seconds):
    """Requests a second and microseconds a request: as it is, recorded into a file in memory, and with requests kept, of which
    none fails. The three of a back end take turns."""
    folder = pathlib.Path("/dev/shm") / f"haft-http-recorded.{os.getpid()}"
    ways = {"as it is": {}, "recorded": {"HAFT_IO_RECORD": str(folder / "run")},
            "keeping requests": {"HAFT_IO_KEEP_REQUESTS": str(folder / "requests")}}

    def run(name, connections, more):
        command, environment = found[name]
        figures = loaded(build, (command, {**environment, **more}), "full", connections, seconds)
        return None if figures is None else figures[:2]
    folder.mkdir()
    try:
        return {name: {str(connections): measuring.series(
            {way: lambda name=name, connections=connections, more=more: run(name, connections, more) for way, more in ways.items()},
            repeats) for connections in CONNECTIONS} for name in HAFT if name in found}
    finally:
        shutil.rmtree(folder)


# ---- HTTP/2, whose load is nghttp2's h2load ----


def wait_for_port(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.02)


def loaded_by(server, load):
    """The output of the command that `load` makes of a port, and the seconds the server has used: in all, in user mode."""
    command, environment = server
    port = free_port()
    words = [str(word) for word in command(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment},
                          preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})) as process:
        wait_for_port(port)
        text = measuring.measured(load(port), 1)  # on the last processor
        process.terminate()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    return text or "", used.ru_utime + used.ru_stime, used.ru_utime


def loaded_by_h2load(server, requests):
    """Requests a second, and the server's microseconds a request: in all, in user mode."""
    text, used, in_user_mode = loaded_by(
        server, lambda port: ["h2load", "-n", requests, "-c", 64, "-m", 10, f"http://127.0.0.1:{port}/bench"])
    rate = re.search(r"([0-9.]+) req/s", text)
    if rate is None or f" {requests} succeeded" not in text:
        return None
    return [float(rate[1]), used * 1e6 / requests, in_user_mode * 1e6 / requests]


def measure_http2(build, repeats, requests):
    nghttpd = shutil.which("nghttpd") or shutil.which("/usr/sbin/nghttpd")
    if not shutil.which("h2load") or not nghttpd or not (build / "http" / "haft").exists():
        return {}
    folder = build / "http" / "peers" / "nghttpd"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench").write_text("x" * 1024, encoding="utf-8")
    found = {name: (program(build / "http" / "haft"), {"HAFT_IO_BACKEND": name.rpartition(" ")[2]}) for name in HAFT}
    found["nghttpd"] = (lambda port: [nghttpd, "--no-tls", "-d", folder, port], {})
    return measuring.series({name: lambda server=server: loaded_by_h2load(server, requests) for name, server in found.items()}, repeats)


# ---- TLS ----


def make_certificate(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                           "365", "-subj", "/CN=localhost", "-keyout", folder / "key.pem", "-out", folder / "chain.pem"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def nginx_tls_command(nginx, folder):
    plain_command = nginx_command(nginx, folder)

    def command(port):
        words = plain_command(port)
        path = folder / "nginx.conf"
        text = path.read_text(encoding="utf-8").replace(
            f"{port} backlog=4096;", f"{port} ssl backlog=4096; ssl_certificate {folder}/chain.pem; "
            f"ssl_certificate_key {folder}/key.pem; location = /large {{ root {folder}; }}")
        path.write_text(text, encoding="utf-8")
        return words
    return command


def handshakes(server, seconds):
    """Connections a second, each of which has one answer, and the server's microseconds for one."""
    text, used, _ = loaded_by(server, lambda port: ["openssl", "s_time", "-connect", f"127.0.0.1:{port}", "-new", "-www",
                                                    "/small", "-time", seconds])
    count = re.search(r"(\d+) connections in \d+ real seconds", text)
    return None if count is None or int(count[1]) == 0 else [int(count[1]) / seconds, used * 1e6 / int(count[1])]


def bulk(server, requests):
    """Mebibytes a second, and the server's microseconds for one."""
    text, used, _ = loaded_by(server, lambda port: ["h2load", "--h1", "-n", requests, "-c", 8,
                                                    f"https://127.0.0.1:{port}/large"])
    rate = re.search(r"([0-9.]+) req/s", text)
    if rate is None or f" {requests} succeeded" not in text:
        return None
    return [float(rate[1]), used * 1e6 / requests]


def measure_tls(build, found, repeats, seconds, requests):
    folder = build / "http" / "peers" / "tls"
    program_path = build / "http" / "https"
    if not program_path.exists() or not shutil.which("openssl") or not shutil.which("h2load") or not make_certificate(folder):
        return {}
    (folder / "large").write_text("x" * 1024 * 1024, encoding="utf-8")
    chosen = {name: (lambda port: [program_path, folder, port], {"HAFT_IO_BACKEND": name.rpartition(" ")[2]}) for name in HAFT}
    if "nginx" in found:
        chosen["nginx"] = (nginx_tls_command(nginx_path(), folder), {})

    def run(server):
        parts = handshakes(server, seconds), bulk(server, requests)
        return None if None in parts else [*parts[0], *parts[1]]
    return measuring.series({name: lambda server=server: run(server) for name, server in chosen.items()}, repeats)


def measure_tls_idle(build, found, counts):
    """KiB a connection, by how many there are and server; one of them is OpenSSL alone."""
    folder, here = build / "http" / "peers" / "tls", build / "http"
    if not (here / "tls_idle").exists() or not shutil.which("openssl") or not make_certificate(folder):
        return {}
    chosen = {OPENSSL: (lambda port: [], {})}
    for name in HAFT:
        chosen[name] = (lambda port: [here / "https", folder, port], {"HAFT_IO_BACKEND": name.rpartition(" ")[2]})
    if "nginx" in found:
        chosen["nginx"] = (nginx_tls_command(nginx_path(), folder), {})
    if "Go" in found:
        chosen["Go"] = (lambda port: [here / "peers" / "go" / "server", port, folder], {})

    def run(server, count):
        command, environment = server
        port = free_port()
        text = measuring.measured([here / "tls_idle", folder, port, count, *command(port)], os.cpu_count(), environment)
        return [] if text is None else [float(text)]
    return {str(count): {name: run(server, count) for name, server in chosen.items()} for count in counts}


# ---- A service in JSON over a database ----


@contextlib.contextmanager
def postgres():
    """A new PostgreSQL with the data: how programs connect to it, and its process number; nothing, if it is missing."""
    script, hold = ROOT / "io" / "posix" / "tests" / "libraries" / "postgres.sh", HERE / "json" / "hold.sh"
    with subprocess.Popen(["sh", script, hold, "epoll"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        where = process.stdout.readline().strip()
        if where.startswith("host="):
            subprocess.run(["psql", "-q", "-c", TODO, where], check=True)
            folder = pathlib.Path(where.split()[0].removeprefix("host="))
            yield where, (folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0]
        else:
            yield None, None
        process.stdin.close()


def make_sqlite(path):
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.executescript(TODO)
    database.close()
    return path


def json_versions():
    drivers = dict(re.findall(r"(go-sqlite3|pgx/v5) v([0-9.]+)", (HERE / "json" / "go" / "go.mod").read_text(encoding="utf-8")))
    return (f"SQLite {sqlite3.sqlite_version}, {measuring.first_line('pg_config', '--version') or 'PostgreSQL is missing'}; "
            f"go-sqlite3 {drivers['go-sqlite3']}, which brings its own SQLite, pgx {drivers['pgx/v5']}")


def measure_json(build, repeats, seconds, builds=measuring.builds):
    """By database and by what is asked for: what load prints of each server."""
    folder = build / "http" / "peers" / "json"
    go = folder / "server"
    has_go = builds(["go", "build", "-o", go, "."], HERE / "json" / "go")

    def figures(store, where, environment):
        path = build / "http" / f"json_{store}"
        if where is None or not path.exists():
            return {}
        found = {name: (lambda port: [path, where, port], {"HAFT_IO_BACKEND": name.rpartition(" ")[2], **environment})
                 for name in HAFT}
        if has_go:
            found["Go"] = (lambda port: [go, store, where, port], environment)
        return {what: measuring.series({name: lambda server=server, asked=asked: loaded(build, server, "full", 64, seconds, asked)
                                        for name, server in found.items()}, repeats)
                for what, asked in ASKED.items()}

    folder.mkdir(parents=True, exist_ok=True)
    measured = {"versions": json_versions(), "load_average": round(os.getloadavg()[0], 1),
                "SQLite": figures("sqlite", make_sqlite(folder / "todo.db"), {})}
    with postgres() as (where, number):
        measured["PostgreSQL"] = figures("postgres", where, {"BESIDE": number or ""})
    return measured


# ---- The page ----


def median(figures, name, index):
    values = figures.get(name)
    return statistics.median(measuring.column(values, index)) if values else None


def plain(value):
    return "-" if value is None else f"{value:.1f}"


def ratio(figures, peer, index):
    ours = [value for value in (median(figures, name, index) for name in HAFT) if value is not None]
    theirs = median(figures, peer, index)
    return min(ours) / theirs if ours and theirs else None


def with_spread(figures, name, index):
    values = figures.get(name)
    return measuring.figure(measuring.column(values, index)) if values else "-"


def load_tables(load):
    names = list(next(iter(load.values())))
    figures_rows = [[f"{name}, {int(connections):,} connections", with_spread(figures, name, 1), with_spread(figures, name, 2),
                     with_spread(figures, name, 0)] for connections, figures in load.items() for name in names]
    ratio_rows = []
    for peer, index, *limits in LIMITS:
        row = [f"{peer}, {'in all' if index == 1 else 'in user mode'}"]
        for connections, limit in zip(load, limits):
            measure = ratio(load[connections], peer, index)
            row += ["-" if measure is None else f"{measure:.2f}", str(limit), measuring.verdict(measure, limit)]
        ratio_rows.append(row)
    head = [part for connections in load for part in (f"{int(connections):,} connections", "at most", "met")]
    return (measuring.table(["the server's processor time a request, us", "in all", "in user mode", "requests a second"], figures_rows) +
            "\n" + measuring.table(["the better of Haft's back ends, to", *head], ratio_rows) + loop_beside_nginx(load))


def loop_beside_nginx(load):
    """The limit of a server that reads once a request, and writes once."""
    pairs = [(median(figures, LOOP, 1), median(figures, "nginx", 1)) for figures in load.values()]
    if any(None in pair for pair in pairs):
        return ""
    shares = " and ".join(f"{loop / nginx:.2f}" for loop, nginx in pairs)
    return (f"\nThe loop, which does nothing but read once a request and write once, takes {shares} of nginx's time: nearly all of "
            "it is the kernel's, for any server.\n")


def latency_rows(latency, first):
    rows = [[name, *(with_spread(latency, name, first + index) for index in (0, 1, 4, 2, 3))] for name in latency]
    return measuring.table(["us", "requests a second", "p50", "usual p99", "p99 of all", "p99.9 of all"], rows)


def tails_section(tails):
    if not tails:
        return ""
    return f"""
## Tails with many connections

The same with {TAILS:,} connections, for Haft's servers in OCaml, their peers and Haft's in C++: at two thirds of what each server answered just before, then at {SAME_RATE:,} requests a second. {tails['machine']}, {tails['date']}; the load average was {tails['load_average']} when this began.

{latency_rows(tails['latency'], 0)}
{latency_rows(tails['latency'], 5)}"""


def latency_table(latency, first):
    """`first` is the index of a figure of requests a second."""
    ours = [value for value in (median(latency, name, first + 4) for name in HAFT) if value is not None]
    others = [value for value in (median(latency, name, first + 4) for name in latency
                                  if not name.startswith(("Haft", LOOP))) if value is not None]
    met = measuring.verdict(min(ours), min(others)) if ours and others else "-"
    return (latency_rows(latency, first) +
            f"\nHaft's usual p99, with the better back end, is to be no worse than the best peer's: {met}.\n")


def idle_table(idle):
    names = list(next(iter(idle.values())))
    rows = []
    for count, figures in idle.items():
        ours = [figures[name][0] for name in HAFT if figures.get(name)]
        go = figures.get("Go")
        measure = min(ours) if ours else None
        rows.append([f"{int(count):,} connections", *(measuring.figure(figures.get(name)) for name in names),
                     measuring.verdict(measure, MOST_IDLE), measuring.verdict(measure, go[0]) if go else ""])
    return measuring.table(["KiB", *names, f"at most {MOST_IDLE}", "less than Go's"], rows)


def rising_drawing(rising):
    rows = [[(f"{what}, us, {'one thread' if threads == '1' else 'two threads'}", "requests a second offered",
              {name: [(point[0], point[column]) for point in points] for name, points in figures.items()})
             for column, what in ((2, "p50"), (3, "p99"), (4, "p99.9"))]
            for threads, figures in rising.items() if figures]
    return plot.drawing("Latency while the offered load rises to saturation", rows, logarithmic=True)


def idle_drawing(idle):
    names = list(next(iter(idle.values())))
    lines = {name: [(int(count), figures[name][0]) for count, figures in idle.items() if figures.get(name)] for name in names}
    return plot.drawing("Memory of an idle connection",
                        [[("KiB a connection", "idle connections", {name: line for name, line in lines.items() if line})]])


def loaded_note(results, name):
    """For figures that were taken by hand while other programs ran; measuring them anew removes it."""
    is_loaded = name in results.get("on_a_loaded_machine", [])
    return " These figures are from a loaded machine (19 programs for two processors)." if is_loaded else ""


def middleware_table(runs):
    if not runs:
        return "Missing.\n"
    kinds = ["functions that handle one each (`server.use`)", "functions, and each effect is performed once",
             "handlers alone (`server.handle`)", "handlers alone, and each effect is performed once",
             "functions that catch (`try` around `next()`), and nothing is thrown"]
    rows = []
    for index, kind in enumerate(kinds):
        row = [kind]
        for column in (2 * index, 2 * index + 1):
            values = measuring.column(runs, column)
            row += [measuring.figure(values), measuring.verdict(statistics.median(values), MOST_MIDDLEWARE) if index % 2 == 0 else ""]
        rows.append(row)
    limit = f"at most {MOST_MIDDLEWARE}"
    return measuring.table(["ten around a request, ns", "once a request", limit, "again at once", limit], rows)


def recorded_section(results):
    figures = results.get("recorded")
    if not figures:
        return ""
    rows = []
    for name, by_connections in figures.items():
        for connections, ways in by_connections.items():
            lost = {way: 100 * (1 - median(ways, "as it is", 1) / median(ways, way, 1)) for way in ways}
            rows.append([f"{name}, {int(connections):,} connections", *(with_spread(ways, way, 1) for way in ways),
                         *(f"{lost[way]:.1f}" for way in list(ways)[1:]), str(MOST_LOST), measuring.verdict(lost["recorded"], MOST_LOST),
                         *(with_spread(ways, way, 0) for way in ways)])
    return f"""
## While it is recorded

A server of one thread, recorded into a file in memory (`HAFT_IO_RECORD`), and with requests kept, of which none fails (`HAFT_IO_KEEP_REQUESTS`). What it loses of its requests a second is by the processor time that each takes, since the requests that were answered depend as much on what else ran on the machine.{loaded_note(results, "recorded")}

{measuring.table(["processor time of a request, us", "as it is", "recorded", "keeping requests", "lost, %", "lost by keeping, %", "at most",
                  "met", "requests a second", "recorded", "keeping requests"], rows)}"""


def http2_section(figures):
    if not figures:
        return ""
    measure = ratio(figures, "nghttpd", 1)
    rows = [[name, with_spread(figures, name, 1), with_spread(figures, name, 2), with_spread(figures, name, 0)] for name in figures]
    return f"""
## HTTP/2

64 connections without TLS, with 10 requests at a time each, by h2load, which has a processor of its own; nghttpd, of the same nghttp2, sends a file of 1 KiB.

{measuring.table(["the server's processor time a request, us", "in all", "in user mode", "requests a second"], rows)}
The better of Haft's back ends, to nghttpd: {measure:.2f}, at most {MOST_HTTP2}: {measuring.verdict(measure, MOST_HTTP2)}.
"""


def tls_section(figures):
    if not figures:
        return ""
    rows = [[name, *(with_spread(figures, name, index) for index in range(4))] for name in figures]
    return f"""
## TLS

One thread, TLS 1.3, a certificate of P-256. Handshakes: OpenSSL's s_time connects anew each time, and reads one answer. Bytes: 8 kept connections of h2load ask for a mebibyte at a time; nginx sends a file, Haft what it has in memory.

{measuring.table(["", "handshakes a second", "the server's processor time for one, us", "MiB a second", "for one, us"], rows)}"""


def tls_idle_section(tls_idle):
    if not tls_idle:
        return ""
    names = list(next(iter(tls_idle.values())))
    rows = []
    for count, figures in tls_idle.items():
        ours = [figures[name][0] for name in HAFT if figures.get(name)]
        openssl, go = figures.get(OPENSSL), figures.get("Go")
        measure = min(ours) if ours else None
        rows.append([f"{int(count):,} connections", *(measuring.figure(figures.get(name)) for name in names),
                     measuring.verdict(measure, openssl[0] + MOST_TLS_IDLE) if openssl else "", measuring.verdict(measure, go[0]) if go else ""])
    return f"""
Memory of the server, page tables included, for each connection over TLS 1.3 that has had one answer and is idle, beside a server that is OpenSSL alone and keeps nothing of its own.

{measuring.table(["KiB", *names, f"at most OpenSSL's and {MOST_TLS_IDLE}", "less than Go's"], rows)}"""


def json_table(store, figures):
    if not figures:
        return f"{store} was missing.\n"
    has_server = store == "PostgreSQL"
    columns = [("requests a second", 0), ("the server's processor time a request, us", 1),
               *([("PostgreSQL's, us", 5)] if has_server else []), ("p50, us", 2), ("p99, us", 3)]
    rows = [[f"{what}: {name}", *(with_spread(servers, name, index) for _, index in columns)]
            for what, servers in figures.items() for name in servers]
    ratios = [(what, ratio(servers, "Go", 1)) for what, servers in figures.items()]
    said = ", ".join(f"{measure:.2f} ({what})" for what, measure in ratios if measure is not None)
    return (measuring.table([store, *(head for head, _ in columns)], rows) +
            (f"\nThe server's processor time, the better of Haft's back ends to Go: {said}.\n" if said else ""))


def json_section(figures):
    if not figures:
        return ""
    return f"""
## A service in JSON over a database

A to-do list is read, with 64 connections, one request at a time each: from SQLite, and from PostgreSQL over a Unix socket. Each server has one thread for its tasks, one processor, eight connections to the database, and the same two statements, prepared once for each of these. Haft's are [in C](json), with jansson; threads of the pool call SQLite, and libpq, which knows nothing of tasks, suspends them by libhaft-posix. Go's has net/http and encoding/json, GOMAXPROCS=1, and the drivers that are used most. PostgreSQL shares the processors with the server and the load. {figures['versions']}. The load average was {figures['load_average']} when this began.

{json_table("SQLite", figures["SQLite"])}
{json_table("PostgreSQL", figures["PostgreSQL"])}"""


def report(results):
    return f"""# Benchmarks of libhaft-http

Written by `bench/http/run.py`. {results['machine']}, {results['date']}; {results['versions']}. Medians of {results['repeats']} runs that take turns [least to most]; compare figures of one table only. The load average was {results['load_average']} when they began: the more that is, the less the figures are worth. The peers: {results['peers']}.

HTTP/1.1 without TLS. Each connection is kept and has one request at a time, with three fields; the answer has 1 KiB. The server has one thread and one processor, the load the other.

## Load

From when each connection has had one answer; each run takes half a second. Time in user mode is from a run of its own, by samples of the kernel every tenth of a millisecond. Haft has all its default limits on.

{load_tables(results['load'])}
## Latency

64 connections, at two thirds of the requests a second that the server answered just before. A client's wait begins when its request was due, whether a connection was free or not. The usual p99 is the median of the p99 of each 25 ms: what the server does, without the milliseconds for which the machine now and then runs nobody, which decide the p99 of all.

{latency_table(results['latency'], 0)}
At {SAME_RATE:,} requests a second, the same for all. What the loop on epoll has there, which does not parse, is the machine's and the load's.

{latency_table(results['latency'], 5)}{tails_section(results.get('tails'))}
![Latency while the offered load rises](rising.svg)

From a fifth of what a server answers at most up to all of it, at 64 connections. With two threads, the server has both processors, one of which the load keeps busy, too.

## Memory

Resident memory of the server, page tables included, for each connection that has had one answer and is idle. Haft's connection has no stack then.

{idle_table(results['idle'])}
![Memory of an idle connection](idle.svg)

## Middleware

Ten handlers of effects around a request: how much longer it then takes from before the outermost to the handler of the route and back. Once a request, behind the system calls by which it has come, their code and stack are in no near cache; at once again, a hundred times in a row, all is.{loaded_note(results, "middleware")}

{middleware_table(results['middleware'])}{recorded_section(results)}{http2_section(results.get('http2'))}{tls_section(results.get('tls'))}{tls_idle_section(results.get('tls_idle'))}{json_section(results.get('json'))}"""


def front_table(results):
    shown = {"Haft": "Haft, io_uring", "may_minihttp": "may_minihttp", "hyper": "hyper", "Boost.Beast": "Boost.Beast",
             "nginx": "nginx", "Go": "Go", "epoll without parsing": LOOP}
    rows = [[f"{int(connections):,} connections", *(plain(median(figures, name, 1)) for name in shown.values())]
            for connections, figures in results["load"].items()]
    return measuring.table(["processor time of a request (HTTP/1.1, 1 KiB, one thread), us", *shown], rows)


def pages(results):
    yield HERE / "report.md", report(results)
    yield HERE / "rising.svg", rising_drawing(results["rising"])
    yield HERE / "idle.svg", idle_drawing(results["idle"])
    front = ROOT / "README.md"
    yield front, measuring.marked(front.read_text(encoding="utf-8"), front_table(results), "bench/http/run.py")


def main():
    arguments = measuring.arguments_of(__doc__, WORKS)
    kept = HERE / "results.json"
    results = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if arguments.check:
        return measuring.check_pages(pages(results), "bench/http/run.py")
    if not arguments.pages:
        quick, build = arguments.quick, arguments.build
        repeats, seconds = (1, 0.1) if quick else (arguments.repeats, 0.5)
        load_average = os.getloadavg()[0]
        builds = (lambda *_: False) if quick else measuring.builds
        found = servers(build, builds)
        for name in WORKS if quick else arguments.only or WORKS:
            print(f"  {name}", file=sys.stderr)
            if name == "load":
                results[name] = measure_load(build, found, repeats, seconds)
            elif name == "latency":
                results[name] = measure_latency(build, found, repeats, seconds)
            elif name == "tails":
                if not quick:
                    results[name] = measure_tails(build, found, repeats, 1)
            elif name == "rising":
                few = {name: server for name, server in found.items() if name in HAFT} if quick else found
                results[name] = measure_rising(build, few, repeats, seconds, SHARES[-1:] if quick else SHARES)
            elif name == "http2":
                results[name] = measure_http2(build, repeats, 1000 if quick else 100000)
            elif name == "tls":
                results[name] = measure_tls(build, found, repeats, 1 if quick else 2, 10 if quick else 500)
            elif name == "tls_idle":
                results[name] = measure_tls_idle(build, found, [20] if quick else TLS_IDLE)
            elif name == "json":
                results[name] = measure_json(build, repeats, 0.1 if quick else 1, builds)
            elif name == "recorded":
                results[name] = measure_recorded(build, found, repeats, seconds)
            elif name == "idle":
                results[name] = measure_idle(build, found, [100] if quick else IDLE)
            else:
                results[name] = measure_middleware(build, repeats, 1000 if quick else 50000)
            results["on_a_loaded_machine"] = [other for other in results.get("on_a_loaded_machine", []) if other != name]
        results.update({
            "versions": versions(found),
            "machine": machine(),
            "date": time.strftime("%Y-%m-%d"), "repeats": repeats, "load_average": round(load_average, 1),
            "peers": "a loop on epoll by hand that does not parse and sends the same bytes each time; may_minihttp on one "
                     "worker; hyper on Tokio's runtime of one thread, both built with optimisation; Boost.Beast in "
                     "callbacks, with Asio's hint that there is one thread, without limits of time; nginx, one process that "
                     "returns a text of its configuration, without an access log; Go's net/http with GOMAXPROCS=1"})
        if quick:
            list(pages(results))
            tables = [*results["load"].values(), *results["json"]["SQLite"].values(), *results["json"]["PostgreSQL"].values()]
            failed = [name for figures in tables for name, values in figures.items()
                      if not values and "io_uring" not in name]  # which the system may lack
            print("\n".join(f"{name} gave no figure" for name in failed), end="", file=sys.stderr)
            return 1 if failed else 0
        kept.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for path, text in pages(results):
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
