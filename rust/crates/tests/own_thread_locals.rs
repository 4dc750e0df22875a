// SPDX-License-Identifier: MIT
//! Crates that park threads, list them, or keep what they have in thread-local variables: each by a
//! hundred tasks of one thread, which have such variables of their own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const TASKS: usize = 100;

/// Runs the function on as many tasks at once, with their numbers. None where that is refused.
fn on_tasks<T: Send>(function: impl Fn(usize) -> T + Sync) -> Option<Vec<T>> {
    if let Some(reason) = haft::own_thread_locals_refused() {
        println!("left out: {reason}");
        return None;
    }
    let options = haft::Options::new().own_thread_locals();
    let function = &function;
    let all = || haft::all((0..TASKS).map(|i| move || function(i)));
    Some(haft::run_with(options, all).unwrap())
}

fn pause() {
    thread::sleep(Duration::from_micros(100));
}

#[test]
fn crossbeam_sends_between_tasks_and_selects() {
    let (numbers, received) = crossbeam_channel::bounded(1);
    let (words, heard) = crossbeam_channel::unbounded();
    let sum = AtomicUsize::new(0);
    on_tasks(|i| {
        if i == 0 {
            for _ in 1..TASKS {
                let number: usize = crossbeam_channel::select! {
                    recv(received) -> number => number.unwrap(),
                    recv(heard) -> number => number.unwrap(),
                };
                sum.fetch_add(number, Ordering::Relaxed);
            }
            assert_eq!(sum.load(Ordering::Relaxed), TASKS * (TASKS - 1) / 2);
        } else if i % 2 == 0 {
            numbers.send(i).unwrap();
        } else {
            words.send(i).unwrap();
        }
    });
}

#[test]
fn flume_sends_without_room_between_tasks() {
    let (sender, receiver) = flume::bounded(0);
    let sums = on_tasks(|i| {
        if i == 0 {
            return receiver.iter().take(TASKS - 1).sum::<usize>();
        }
        sender.send(i).unwrap();
        0
    });
    assert!(sums.is_none_or(|sums| sums[0] == TASKS * (TASKS - 1) / 2));
}

#[test]
fn initialisers_of_once_cell_wait_and_are_waited_for() {
    static LAZY: once_cell::sync::Lazy<usize> = once_cell::sync::Lazy::new(|| {
        pause();
        42
    });
    let cell = once_cell::sync::OnceCell::new();
    on_tasks(|_| {
        let value = cell.get_or_init(|| {
            pause();
            *LAZY
        });
        assert_eq!(*value, 42);
    });
}

#[test]
fn moka_computes_a_value_once() {
    let cache = moka::sync::Cache::new(1000);
    let computed = AtomicUsize::new(0);
    let is_refused = on_tasks(|i| {
        let value = cache.get_with(i % 10, || {
            computed.fetch_add(1, Ordering::Relaxed);
            pause();
            i % 10
        });
        assert_eq!(value, i % 10);
    })
    .is_none();
    assert_eq!(
        computed.load(Ordering::Relaxed),
        if is_refused { 0 } else { 10 }
    );
}

#[test]
fn locks_of_parking_lot_are_held_over_waits() {
    let lock = parking_lot::Mutex::new(0);
    let shared = parking_lot::RwLock::new(0);
    let condition = parking_lot::Condvar::new();
    on_tasks(|i| {
        let mut count = lock.lock();
        let before = *count;
        pause();
        *count = before + 1;
        condition.notify_all();
        while *count < TASKS {
            condition.wait(&mut count);
        }
        drop(count);
        if i % 10 == 0 {
            let mut shared = shared.write();
            let before = *shared;
            pause();
            *shared = before + 1;
        } else {
            let shared = shared.read();
            let before = *shared;
            pause();
            assert_eq!(*shared, before);
        }
    });
}

#[test]
fn a_pool_of_r2d2_has_fewer_connections_than_tasks() {
    struct Numbers(AtomicUsize);
    impl r2d2::ManageConnection for Numbers {
        type Connection = usize;
        type Error = std::io::Error;
        fn connect(&self) -> std::io::Result<usize> {
            pause();
            Ok(self.0.fetch_add(1, Ordering::Relaxed))
        }
        fn is_valid(&self, _: &mut usize) -> std::io::Result<()> {
            Ok(())
        }
        fn has_broken(&self, _: &mut usize) -> bool {
            false
        }
    }
    let pool = r2d2::Pool::builder()
        .max_size(3)
        .build(Numbers(AtomicUsize::new(0)))
        .unwrap();
    on_tasks(|_| {
        let connection = pool.get().unwrap();
        pause();
        assert!(*connection < 3);
    });
}

#[test]
fn an_entry_of_dashmap_is_held_over_a_wait() {
    let map = dashmap::DashMap::new();
    on_tasks(|i| {
        let mut entry = map.entry(i % 3).or_insert(0);
        let before = *entry;
        pause();
        *entry = before + 1;
    });
    assert_eq!(map.iter().map(|entry| *entry).sum::<usize>() % TASKS, 0);
}

#[test]
fn futures_are_blocked_on_by_each_task() {
    let (sender, receiver) = futures::channel::mpsc::unbounded::<usize>();
    let receiver = std::sync::Mutex::new(Some(receiver));
    on_tasks(|i| {
        use futures::StreamExt as _;
        if i == 0 {
            let numbers = receiver.lock().unwrap().take().unwrap().take(TASKS - 1);
            let sum = futures::executor::block_on(numbers.fold(0, async |sum, n| sum + n));
            assert_eq!(sum, TASKS * (TASKS - 1) / 2);
        } else {
            futures::executor::block_on(async {
                let (told, hears) = futures::channel::oneshot::channel();
                thread::spawn(move || told.send(i).unwrap());
                sender.unbounded_send(hears.await.unwrap()).unwrap();
            });
        }
    });
}

/// Each with a connection, a timer and blocking work.
#[test]
fn each_task_has_a_runtime_of_tokio() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            stream.unwrap().write_all(b"text").unwrap();
        }
    });
    on_tasks(|i| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let number = runtime.block_on(async move {
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let mut text = [0; 4];
            let mut size = 0;
            while size < 4 {
                stream.readable().await.unwrap();
                size += stream.try_read(&mut text[size..]).unwrap_or(0);
            }
            assert_eq!(&text, b"text");
            tokio::time::sleep(Duration::from_millis(1)).await;
            tokio::task::spawn_blocking(move || i).await.unwrap()
        });
        assert_eq!(number, i);
    });
}

/// Answers the path of each request, on threads of its own.
fn serve_http() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |stream: TcpStream| -> std::io::Result<()> {
        let mut request = BufReader::new(stream);
        let mut first = String::new();
        request.read_line(&mut first)?;
        loop {
            let mut line = String::new();
            if request.read_line(&mut line)? <= 2 {
                break;
            }
        }
        let path = first.split(' ').nth(1).unwrap_or("").to_owned();
        let size = path.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n");
        request.get_mut().write_all((head + &path).as_bytes())
    };
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || answer(stream.unwrap()));
        }
    });
    address
}

#[test]
fn reqwest_blocks_a_hundred_tasks() {
    let address = serve_http();
    on_tasks(|i| {
        let client = reqwest::blocking::Client::builder()
            .no_proxy()
            .build()
            .unwrap();
        let text = client.get(format!("http://{address}/{i}"));
        assert_eq!(text.send().unwrap().text().unwrap(), format!("/{i}"));
    });
}

#[test]
fn minreq_asks_with_a_time_limit() {
    let address = serve_http();
    on_tasks(|i| {
        let request = minreq::get(format!("http://{address}/{i}")).with_timeout(60);
        assert_eq!(request.send().unwrap().as_str().unwrap(), format!("/{i}"));
    });
}

#[test]
fn notify_watches_for_each_task() {
    use notify::Watcher as _;
    let folder = tempfile::tempdir().unwrap();
    on_tasks(|i| {
        let path = folder.path().join(i.to_string());
        std::fs::create_dir(&path).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut watcher = notify::recommended_watcher(sender).unwrap();
        watcher
            .watch(&path, notify::RecursiveMode::NonRecursive)
            .unwrap();
        std::fs::write(path.join("file"), "text").unwrap();
        receiver.recv().unwrap().unwrap();
        watcher.unwatch(&path).unwrap();
    });
}

#[test]
fn rayon_works_for_tasks_that_wait_as_tasks() {
    on_tasks(|i| {
        let text = format!("text {i}");
        let slow = || {
            thread::sleep(Duration::from_millis(1));
            text.len()
        };
        let (size, text) = rayon::join(slow, || text.clone());
        assert_eq!(size, text.len());
    });
}

#[test]
fn sled_is_one_database_of_all_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let database = sled::open(folder.path()).unwrap();
    on_tasks(|i| {
        let key = i.to_string();
        database.insert(&key, key.as_bytes()).unwrap();
        pause();
        assert_eq!(database.get(&key).unwrap().unwrap(), key.as_bytes());
    });
}

#[test]
fn a_generator_of_rand_is_the_tasks() {
    let numbers = on_tasks(|_| {
        let first: u64 = rand::random();
        pause();
        (first, rand::random::<u64>())
    });
    let mut numbers: Vec<_> = numbers.unwrap_or_default();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
}

/// (The reader is a task of the same thread.)
#[test]
fn a_pipe_is_written_under_a_lock_of_its_own() {
    let (reader, writer) = std::io::pipe().unwrap();
    let (reader, writer) = (std::sync::Mutex::new(reader), std::sync::Mutex::new(writer));
    on_tasks(|i| {
        if i == 0 {
            let mut bytes = vec![0; 4096 * (TASKS - 1)];
            reader.lock().unwrap().read_exact(&mut bytes).unwrap();
        } else {
            writer.lock().unwrap().write_all(&[1; 4096]).unwrap();
        }
    });
}

/// The part of PostgreSQL's protocol that a simple query needs; the answer is the query's text.
fn serve_postgres(mut stream: TcpStream) -> std::io::Result<()> {
    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
    }
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let mut body = vec![0; u32::from_be_bytes(size) as usize - 4];
    stream.read_exact(&mut body)?;
    stream.write_all(&[message(b'R', &[0; 4]), message(b'Z', b"I")].concat())?;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
        stream.read_exact(&mut body)?;
        if head[0] != b'Q' {
            return Ok(());
        }
        let text = body.strip_suffix(&[0]).unwrap();
        let size = (text.len() as u32).to_be_bytes();
        let column = [
            &b"\0\x01name\0"[..],
            &[0; 6],
            b"\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0",
        ];
        let answer = [
            message(b'T', &column.concat()),
            message(b'D', &[b"\0\x01", &size[..], text].concat()),
            message(b'C', b"SELECT 1\0"),
            message(b'Z', b"I"),
        ];
        pause();
        stream.write_all(&answer.concat())?;
    }
}

fn serve_on_threads(
    serve: impl Fn(TcpStream) -> std::io::Result<()> + Copy + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    port
}

#[test]
fn postgres_asks_from_a_hundred_tasks() {
    let port = serve_on_threads(serve_postgres);
    on_tasks(|i| {
        let options = format!("host=127.0.0.1 port={port} user=tester");
        let mut client = postgres::Client::connect(&options, postgres::NoTls).unwrap();
        for question in 0..3 {
            let text = format!("question {question} of {i}");
            let rows = client.simple_query(&text).unwrap();
            let row = rows.iter().find_map(|message| match message {
                postgres::SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            assert_eq!(row, Some(&*text));
        }
    });
}

/// The part of MQTT that a client needs which publishes to itself, with small messages.
fn serve_mqtt(mut stream: TcpStream) -> std::io::Result<()> {
    const CONNECT: u8 = 1;
    const PUBLISH: u8 = 3;
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head)?;
        let mut body = vec![0; head[1].into()];
        stream.read_exact(&mut body)?;
        match head[0] >> 4 {
            CONNECT => stream.write_all(&[0x20, 2, 0, 0])?,
            PUBLISH => stream.write_all(&[&head[..], &body].concat())?,
            _ => return Ok(()),
        }
    }
}

#[test]
fn rumqttc_publishes_from_a_hundred_tasks() {
    use rumqttc::{Client, Event, Incoming, MqttOptions, QoS};
    let port = serve_on_threads(serve_mqtt);
    on_tasks(|i| {
        let options = MqttOptions::new(format!("task {i}"), "127.0.0.1", port);
        let (client, mut connection) = Client::new(options, 10);
        client
            .publish("topic", QoS::AtMostOnce, false, i.to_string())
            .unwrap();
        let came = connection.iter().find_map(|event| match event.unwrap() {
            Event::Incoming(Incoming::Publish(message)) => Some(message.payload),
            _ => None,
        });
        assert_eq!(came.unwrap(), i.to_string().as_bytes());
    });
}
