// SPDX-License-Identifier: MIT

// `hyper PORT`: the answer of ../../load.c by hyper, on Tokio's runtime of one thread.
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::{body::Incoming, server::conn::http1, service::service_fn, Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;

static BODY: [u8; 1024] = [b'x'; 1024];

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(&BODY)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

async fn serve(port: u16) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    loop {
        let (connection, _) = listener.accept().await.unwrap();
        connection.set_nodelay(true).unwrap();
        tokio::task::spawn_local(
            http1::Builder::new().serve_connection(TokioIo::new(connection), service_fn(answer)),
        );
    }
}

fn main() {
    let port = std::env::args().nth(1).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, serve(port));
}
