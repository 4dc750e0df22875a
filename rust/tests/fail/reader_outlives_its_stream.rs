// SPDX-License-Identifier: MIT
fn main() {
    let reader = {
        let (stream, _other) = haft::net::UnixStream::pair().unwrap();
        stream.reader()
    };
    drop(reader);
}
// `stream` does not live long enough
