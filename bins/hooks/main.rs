//! `git arborist hooks`.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(128)
}
