//! `git http-backend` on loopback, for what lies in a repository's root: the few lines of a web server that it needs. How it
//! answers is told by a file, so that an agent can change it in mid-run.

#![allow(dead_code, clippy::unwrap_used, reason = "each file of tests uses what it needs")]

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use arborist_testkit::TestRepo;

/// The file, in the root: `401`, `403` or `hang`; `gone` ends the server at the next request; without it all is served.
pub(crate) const MANNER: &str = "manner";

/// A server that takes pushes.
pub(crate) struct HttpServer {
    port: u16,
}

/// What a request is answered with.
#[derive(Clone)]
struct Backend {
    program: PathBuf,
    root: PathBuf,
    env: Vec<(OsString, OsString)>,
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl HttpServer {
    /// On any port that is free; `None`, with a word on it, where git has no backend.
    pub(crate) fn start(test_repo: &TestRepo) -> Option<Self> {
        let program = PathBuf::from(test_repo.git(["--exec-path"]).answer()).join("git-http-backend");
        if !program.is_file() {
            eprintln!("skipped: there is no '{}'", program.display());
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let root = test_repo.root().to_owned();
        let set = test_repo.command("git", &root);
        let env = set.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let backend = Backend { program, root, env: env.collect() };
        thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                match fs::read_to_string(backend.root.join(MANNER)).unwrap_or_default().as_str() {
                    "gone" => return,
                    "hang" => kept.push(stream),
                    manner => {
                        let (backend, manner) = (backend.clone(), manner.to_owned());
                        thread::spawn(move || backend.answer(stream, &manner));
                    }
                }
            }
        });
        Some(Self { port })
    }

    /// Where it serves a bare repository.
    pub(crate) fn url(&self, repo: &str) -> String {
        format!("http://127.0.0.1:{}/{repo}.git", self.port)
    }
}

/// Changes how all requests are answered from now on.
pub(crate) fn set_server_behavior(root: &Path, manner: &str) {
    match manner {
        "" => fs::remove_file(root.join(MANNER)).unwrap(),
        manner => fs::write(root.join(MANNER), manner).unwrap(),
    }
}

impl Backend {
    fn answer(&self, mut stream: TcpStream, manner: &str) {
        let Some(request) = Request::read(&mut stream) else { return };
        let said = match manner {
            "401" => b"Status: 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\r\n".to_vec(),
            "403" => b"Status: 403 Forbidden\r\n\r\nnot today".to_vec(),
            _ => self.run(&request),
        };
        let split = said.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&said[..split]).into_owned();
        let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
        let rest: Vec<&str> = head.lines().filter(|line| !line.starts_with("Status: ")).collect();
        let head = format!("HTTP/1.1 {status}\r\n{}\r\nConnection: close", rest.join("\r\n"));
        let _ = stream.write_all(&[head.as_bytes(), &said[split..]].concat());
    }

    fn run(&self, request: &Request) -> Vec<u8> {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(self.env.iter().cloned()).env("GIT_PROJECT_ROOT", &self.root);
        command.env("GIT_HTTP_EXPORT_ALL", "1").env("REMOTE_USER", "ada").env("REMOTE_ADDR", "127.0.0.1");
        command.env("REQUEST_METHOD", &request.method).env("PATH_INFO", &request.path);
        command.env("QUERY_STRING", &request.query).env("CONTENT_LENGTH", request.body.len().to_string());
        for (header, variable) in [
            ("content-type", "CONTENT_TYPE"),
            ("content-encoding", "HTTP_CONTENT_ENCODING"),
            ("git-protocol", "GIT_PROTOCOL"),
        ] {
            command.envs(request.header(header).map(|value| (variable, value)));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let body = request.body.clone();
        let writing = thread::spawn(move || drop(stdin.write_all(&body)));
        let output = child.wait_with_output().unwrap();
        writing.join().unwrap();
        output.stdout
    }
}

impl Request {
    fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let mut words = lines.first()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        let header = |line: &String| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_lowercase(), value.to_owned()))
        };
        let headers = lines[1..].iter().filter_map(header).collect();
        let mut request = Self { method, path, query, headers, body: Vec::new() };
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        request.body.resize(length, 0);
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
