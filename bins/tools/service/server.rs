//! The MCP server: it talks to its client on the standard streams until the client closes them.

use std::{
    io,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, RwLock},
    task::{Context, Poll},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use arborist_core::{agent::redact::Secrets, failure::Exit, mutex::MutexExt, process::Cancel};
use git_arborist::entry::Outcome;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    command::{self, CommandLimits},
    files::{ToolOutput, edit_file, read_file, write_file},
    offer::{NoArgs, Offered, ToolAction, offer},
    root::Root,
    search::search_code,
};

/// What all calls share.
struct ServerState {
    roots: Vec<Root>,
    offered: Vec<Offered>,
    bounds: CommandLimits,
    /// Cancelled when we are asked to stop.
    cancel: Cancel,
    /// Cancelled when the client is gone.
    gone: Cancel,
    /// Serialises writes, so that no edit of a file is lost.
    pen: Mutex<()>,
    /// Held by calls in progress.
    busy: RwLock<()>,
}

/// Serves until the client is gone or we are asked to stop. Then no command is left running.
pub(super) fn serve(roots: Vec<Root>, home: PathBuf, timeout: Duration, cancel: &Cancel) -> Outcome {
    let secrets = Secrets::of_environment(std::env::vars_os())?;
    let bench = Arc::new(ServerState {
        offered: offer(&roots),
        roots,
        bounds: CommandLimits { home, timeout, secrets },
        cancel: cancel.clone(),
        gone: Cancel::new(),
        pen: Mutex::new(()),
        busy: RwLock::new(()),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the server")?;
    let served = runtime.block_on(watched(listen(Server(Arc::clone(&bench))), cancel.clone()));
    cancel.cancel();
    drop(bench.busy.write());
    // A task that still waits for the client must not delay the exit.
    runtime.shutdown_background();
    served.context("the server ended")?;
    let signal = cancel.signal().and_then(|signal| u8::try_from(128 + signal).ok());
    Ok(signal.map_or(Exit::Done, Exit::Child))
}

/// Stops listening when we are asked to stop.
async fn watched(
    listening: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    cancel: Cancel,
) -> anyhow::Result<()> {
    let task = tokio::spawn(listening);
    let ended = task.abort_handle();
    thread::spawn(move || {
        while !cancel.wait(Duration::from_secs(3600)) {}
        ended.abort();
    });
    match task.await {
        Ok(served) => served,
        Err(error) if error.is_cancelled() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn listen(server: Server) -> anyhow::Result<()> {
    let (stdin, stdout) = rmcp::transport::stdio();
    let (_, answers) = rmcp::transport::stdio();
    let (gone, line, unsent) = (server.0.gone.clone(), Vec::new(), Vec::new());
    let input = WatchedInput { stdin, gone, line, answers, unsent };
    let service = match server.serve((input, stdout)).await {
        Ok(service) => service,
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    service.waiting().await?;
    Ok(())
}

/// Standard input. Its end cancels all commands, not only the conversation. A line that is not JSON is answered here,
/// because the protocol's library ignores it.
struct WatchedInput {
    stdin: tokio::io::Stdin,
    gone: Cancel,
    /// The line that is being read.
    line: Vec<u8>,
    answers: tokio::io::Stdout,
    /// Answers that are not written yet.
    unsent: Vec<u8>,
}

/// The answer to a line that is not JSON.
const PARSE_ERROR: &str = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"this line is not valid JSON\"}}\n";

impl WatchedInput {
    /// Looks at everything that was read.
    fn look(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_ascii();
        if !line.is_empty() && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err() {
            self.unsent.extend_from_slice(PARSE_ERROR.as_bytes());
        }
    }

    /// Writes the answers. An error means that nobody reads them.
    fn send(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while !self.unsent.is_empty() {
            let written = match Pin::new(&mut self.answers).poll_write(context, &self.unsent) {
                Poll::Ready(written) => written.unwrap_or(self.unsent.len()),
                Poll::Pending => return Poll::Pending,
            };
            self.unsent.drain(..written);
        }
        Pin::new(&mut self.answers).poll_flush(context).map(drop)
    }
}

impl AsyncRead for WatchedInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let known = buffer.filled().len();
        let polled = Pin::new(&mut self.stdin).poll_read(context, buffer);
        self.look(&buffer.filled()[known..]);
        let is_end = polled.is_ready() && buffer.filled().len() == known;
        if is_end {
            self.gone.cancel();
            self.end_line();
        }
        match self.send(context) {
            // The process ends soon, so the last answers must be written first.
            Poll::Pending if is_end => Poll::Pending,
            _ => polled,
        }
    }
}

struct Server(Arc<ServerState>);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let names: Vec<String> =
            self.0.roots.iter().map(|root| format!("{} ({})", root.name, root.path.display())).collect();
        let words = format!(
            "Files and commands of the repositories of this task: {}. \
             Paths are relative to the top of each repository; files outside them cannot be reached.",
            names.join(", ")
        );
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("git-arborist", env!("CARGO_PKG_VERSION")))
            .with_instructions(words)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.0.offered.iter().map(|offered| offered.tool.clone()).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    /// Errors of a tool are reported to the model; only an unknown tool is an error of the client.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(at) = self.0.offered.iter().position(|offered| offered.tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool '{}'", request.name), None));
        };
        let stop = Cancel::new();
        let ended = {
            let (stop, token) = (stop.clone(), context.ct.clone());
            tokio::spawn(async move {
                token.cancelled().await;
                stop.cancel();
            })
        };
        let bench = Arc::clone(&self.0);
        let arguments = request.arguments.unwrap_or_default();
        let answer = tokio::task::spawn_blocking(move || bench.answer(at, arguments, &stop)).await;
        ended.abort();
        let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(result_of(answer).into())
    }
}

fn result_of(answer: ToolOutput) -> CallToolResult {
    match answer {
        Ok(pieces) => CallToolResult::success(pieces.into_iter().map(ContentBlock::text).collect()),
        Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
    }
}

impl ServerState {
    fn answer(&self, at: usize, arguments: JsonObject, stop: &Cancel) -> ToolOutput {
        let _busy = self.busy.read().unwrap_or_else(PoisonError::into_inner);
        let Offered { root, deed, .. } = &self.offered[at];
        let root = &self.roots[*root];
        match deed {
            ToolAction::Read => read_file(root, &parsed(arguments)?),
            ToolAction::Search => search_code(root, &parsed(arguments)?, stop),
            ToolAction::Write => {
                let _pen = self.pen.hold();
                write_file(root, &parsed(arguments)?)
            }
            ToolAction::Edit => {
                let _pen = self.pen.hold();
                edit_file(root, &parsed(arguments)?)
            }
            ToolAction::Run(name) => {
                let NoArgs {} = parsed(arguments)?;
                let tool = root.tools.iter().find(|(tool, _)| tool.as_str() == name);
                let (_, tool) = tool.ok_or_else(|| format!("there is no command '{name}'"))?;
                command::run(root, tool, &self.bounds, &[stop, &self.cancel, &self.gone])
            }
        }
    }
}

fn parsed<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| format!("wrong arguments: {error}"))
}
