// SPDX-License-Identifier: MIT
//! A crawler that was written for threads: each page is a task that calls the blocking crate
//! `ureq`; the site, whose pages take their time, is served on the same thread.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

/// The page `/n` has links to `/2n` and `/2n+1`, up to 31.
fn serve(connection: TcpStream) -> Result<()> {
    let mut lines = BufReader::new(&connection).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let path = request.split(' ').nth(1).unwrap_or("/1");
    let page: u32 = path[1..].parse().unwrap_or(1);
    std::thread::sleep(Duration::from_millis(10));
    let links = [page * 2, page * 2 + 1].map(|link| format!("/{link}\n"));
    let body = if page < 16 {
        links.concat()
    } else {
        String::new()
    };
    let size = body.len();
    write!(
        &connection,
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {size}\r\n\r\n{body}"
    )
}

struct Crawl {
    site: SocketAddr,
    seen: Mutex<BTreeSet<String>>,
}

impl Crawl {
    fn visit<'scope>(&'scope self, scope: &'scope haft::Scope<'scope, '_>, path: String) {
        if !self.seen.lock().unwrap().insert(path.clone()) {
            return;
        }
        scope.spawn(move || {
            let page = ureq::get(format!("http://{}{path}", self.site)).call();
            let text = page.unwrap().body_mut().read_to_string().unwrap();
            text.lines()
                .for_each(|link| self.visit(scope, link.to_owned()));
        });
    }
}

fn main() -> Result<()> {
    haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let site = listener.local_addr()?;
        let crawl = Crawl {
            site,
            seen: Mutex::default(),
        };
        haft::scope(|s| {
            s.spawn(|| {
                while let Ok((connection, _)) = listener.accept() {
                    s.spawn(|| serve(connection));
                }
            });
            // Ends when all pages have been visited.
            haft::scope(|pages| crawl.visit(pages, "/1".to_owned()));
            s.cancel();
        });
        println!("{} pages", crawl.seen.lock().unwrap().len());
        Ok(())
    })
}
