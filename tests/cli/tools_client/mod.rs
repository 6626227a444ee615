//! A bench is a server of tools with a client, for whoever tests what it offers.

#![allow(dead_code, reason = "each file of tests uses what it needs")]
#![allow(clippy::needless_pass_by_value, reason = "arguments are read best where they are passed")]
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use arborist_testkit::TestRepo;
use serde_json::{Value, json};

/// A server, and a client that has introduced itself.
pub(crate) struct ToolsClient {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: BufReader<ChildStdout>,
    asked: u64,
    pub(crate) hello: Value,
}

impl ToolsClient {
    /// In the test's repository, with these options.
    pub(crate) fn open(repo: &TestRepo, args: &[&str]) -> Self {
        Self::open_with(repo, args, &[])
    }

    pub(crate) fn open_with(repo: &TestRepo, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = repo.command("git", &repo.path(""));
        command.args(["arborist", "tools"]).args(args).envs(env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut bench = Self { child, stdin, stdout, asked: 0, hello: Value::Null };
        let client = json!({ "name": "test", "version": "0" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        bench.hello = bench.ask("initialize", &hello)["result"].clone();
        bench.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        bench
    }

    pub(crate) fn say(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.asked, "{answer}");
        answer
    }

    /// The pieces that a tool answers with, and whether it failed.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> (Vec<String>, bool) {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let pieces = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let pieces = pieces.iter().map(|piece| piece["text"].as_str().unwrap().to_owned()).collect();
        (pieces, answer["result"]["isError"] == true)
    }

    /// What a tool answers that must succeed.
    pub(crate) fn works(&mut self, tool: &str, arguments: Value) -> Vec<String> {
        let (pieces, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{pieces:?}");
        pieces
    }

    /// Why a tool fails that must fail.
    pub(crate) fn fails(&mut self, tool: &str, arguments: Value) -> String {
        let (pieces, is_error) = self.call(tool, arguments);
        assert!(is_error, "{pieces:?}");
        pieces.concat()
    }

    pub(crate) fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Says no more; the server ends by itself.
    pub(crate) fn close(mut self) {
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for ToolsClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
