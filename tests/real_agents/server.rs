//! The model's server: HTTP on loopback, a thread for each connection, one request in each.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    model::{Act, Model},
    wire::{Wire, stream},
};

/// How long a turn's commit is waited for. It is there in a moment, or not at all.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves `model` as long as the test runs, on a free port, to programs that work in `dir`.
pub(crate) fn serve(model: Arc<Model>, dir: PathBuf) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let (model, dir) = (Arc::clone(&model), dir.clone());
            // A program that was ended in mid-sentence is no concern of the server's.
            thread::spawn(move || drop(answer(connection, &model, &dir)));
        }
    });
    port
}

fn answer(connection: TcpStream, model: &Model, dir: &Path) -> io::Result<()> {
    let mut connection = BufReader::new(connection);
    let (path, body) = read_request(&mut connection)?;
    let Some(wire) = Wire::of_path(&path) else {
        return reply(connection.get_mut(), "200 OK", &json!({ "data": [], "models": [] }));
    };
    let ask = wire.read(&body);
    wait_for_turns(dir, model.awaited_turns(&ask));
    match model.act(ask) {
        Act::Hang => io::copy(&mut connection, &mut io::sink()).map(drop),
        Act::Refuse => reply(connection.get_mut(), "429 Too Many Requests", &wire.refusal()),
        act => {
            let events = stream(&wire.answer(&act, &body, dir));
            send(connection.get_mut(), "200 OK", "text/event-stream", &events)
        }
    }
}

/// Waits until so many turns are committed, and not for ever.
fn wait_for_turns(dir: &Path, count: usize) {
    let begun = Instant::now();
    while turns_in(dir) < count && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(20));
    }
}

/// How many turns are committed.
fn turns_in(dir: &Path) -> usize {
    let log = ["log", "--format=%h", "--grep=@turn)"];
    let log = Command::new("git").current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").args(log).output();
    log.map_or(0, |log| log.stdout.iter().filter(|byte| **byte == b'\n').count())
}

/// The path and the body of a request; a body that is no JSON is nothing.
fn read_request(connection: &mut BufReader<TcpStream>) -> io::Result<(String, Value)> {
    let mut first = String::new();
    connection.read_line(&mut first)?;
    let path = first.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok((path, serde_json::from_slice(&body).unwrap_or_default()))
}

fn reply(connection: &mut TcpStream, status: &str, body: &Value) -> io::Result<()> {
    send(connection, status, "application/json", &body.to_string())
}

fn send(connection: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{body}"
    )?;
    connection.flush()
}
