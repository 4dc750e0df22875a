// SPDX-License-Identifier: MIT

// `may PORT`: the answer of ../../load.c by may_minihttp, on one worker.
use may_minihttp::{HttpServer, HttpService, Request, Response};

static BODY: [u8; 1024] = [b'x'; 1024];

#[derive(Clone)]
struct Answer;

impl HttpService for Answer {
    fn call(&mut self, _: Request, response: &mut Response) -> std::io::Result<()> {
        response.header("Content-Type: text/plain");
        response.body(std::str::from_utf8(&BODY).unwrap());
        Ok(())
    }
}

fn main() {
    let port: u16 = std::env::args().nth(1).unwrap().parse().unwrap();
    may::config().set_workers(1);
    HttpServer(Answer).start(("127.0.0.1", port)).unwrap().join().unwrap();
}
