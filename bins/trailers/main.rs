//! `git arborist trailers`.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(128)
}
