//! Finds out from a program's output which host it could not reach.

use super::{MAX_NAMED, has_any};
use crate::process::Confinement;

/// What programs print if they have no network, in lower case.
const UNREACHABLE: [&str; 14] = [
    "network is unreachable",
    "network unreachable",
    "enetunreach",
    "ehostunreach",
    "no route to host",
    "could not resolve host",
    "name resolution",
    "name or service not known",
    "failed to lookup address",
    "eai_again",
    "enotfound",
    "connection refused",
    "econnrefused",
    "couldn't connect to server",
];

/// Words before the name of a host, in lower case.
const BEFORE_HOST: [&str; 11] = [
    "host", "hostname", "to", "lookup", "tcp", "eai_again", "enotfound", "enetunreach", "ehostunreach",
    "econnrefused", "url",
];

/// What to say about hosts that a program could not reach, if the sandbox has no network.
pub(super) fn describe(output: &str, confinement: &Confinement) -> Option<String> {
    let key = confinement.offline_by.as_deref()?;
    let mut lines = output.lines().filter(|line| has_any(line, &UNREACHABLE)).peekable();
    lines.peek()?;
    let mut hosts: Vec<String> = Vec::new();
    for host in lines.filter_map(find_host) {
        if hosts.len() < MAX_NAMED && !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    let so =
        if hosts.is_empty() { String::new() } else { format!(", so {} cannot be reached", hosts.join(", ")) };
    Some(format!("the sandbox has no network{so}; to allow it, set {key} to \"all\""))
}

/// The host that a line names, with its port if the line has one.
fn find_host(line: &str) -> Option<String> {
    let is_end = |c: char| c.is_whitespace() || "'\"`<>(),;[]=".contains(c);
    let words: Vec<&str> = line.split(is_end).filter(|word| !word.is_empty()).collect();
    let pairs = || words.windows(2).map(|pair| (pair[0].trim_end_matches(':').to_lowercase(), pair[1]));
    let mut named = pairs().filter(|(before, _)| BEFORE_HOST.contains(&before.as_str()));
    let host = named.find_map(|(_, word)| as_host(word));
    let host = host.or_else(|| words.iter().find_map(|word| as_host(word.split_once("://")?.1)))?;
    let port =
        pairs().find(|(before, _)| before == "port").map(|(_, word)| word.trim_end_matches([':', '.']));
    let port = port.filter(|port| !host.contains(':') && port.parse::<u16>().is_ok());
    Some(port.map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}

/// A word as the name or address of a host, perhaps with a port.
fn as_host(word: &str) -> Option<String> {
    let word = word.split_once("://").map_or(word, |(_, rest)| rest);
    let word = word.split('/').next().unwrap_or_default().trim_end_matches([':', '.']);
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    let is_host = word.contains('.') || word == "localhost" || word.starts_with("localhost:");
    (is_host && word.chars().all(is_name)).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_found_in_messages_of_common_programs() {
        for (line, host) in [
            ("curl: (6) Could not resolve host: example.com", Some("example.com")),
            (
                "curl: (7) Failed to connect to 127.0.0.1 port 8923 after 0 ms: Couldn't connect to server",
                Some("127.0.0.1:8923"),
            ),
            (
                "fatal: unable to access 'https://github.com/x/y/': Could not resolve host: github.com",
                Some("github.com"),
            ),
            ("<urlopen error [Errno -3] Temporary failure in name resolution>", None),
            ("Error: getaddrinfo EAI_AGAIN registry.npmjs.org", Some("registry.npmjs.org")),
            ("connect ENETUNREACH 1.2.3.4:80 - Local (0.0.0.0:0)", Some("1.2.3.4:80")),
            (
                "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
                Some("github.com"),
            ),
            ("ssh: connect to host 1.2.3.4 port 22: Network is unreachable", Some("1.2.3.4:22")),
            ("Connecting to 1.2.3.4:80... failed: Network is unreachable.", Some("1.2.3.4:80")),
            (
                "dial tcp: lookup proxy.golang.org on 127.0.0.53:53: connection refused",
                Some("proxy.golang.org"),
            ),
            (
                "HTTPSConnectionPool(host='pypi.org', port=443): Max retries: Name or service not known",
                Some("pypi.org:443"),
            ),
            (
                "download of https://index.crates.io/co/nf failed: network unreachable",
                Some("index.crates.io"),
            ),
        ] {
            assert_eq!(find_host(line).as_deref(), host, "{line}");
        }
    }
}
