//! Our lines in a hook file of others: inserted below its first line, and removed so that every byte is as before.

/// Inserts our block. `None` is a file that does not exist yet.
///
/// If the file does not end in a newline, neither does the block: so it can be distinguished from a file that is
/// entirely ours.
pub(super) fn insert(file: Option<&[u8]>, block: &str) -> Vec<u8> {
    let block = block.as_bytes();
    let unended = block.strip_suffix(b"\n").unwrap_or(block);
    let Some(file) = file else {
        return block.to_vec();
    };
    if file.is_empty() {
        return unended.to_vec();
    }
    let first = file.iter().position(|b| *b == b'\n').map(|end| end + 1);
    match first {
        _ if !file.starts_with(b"#!") => [block, file].concat(),
        Some(end) => [&file[..end], block, &file[end..]].concat(),
        None => [file, b"\n", unended].concat(),
    }
}

/// Removes our block. Returns `None` if the file was entirely ours.
pub(super) fn remove(file: &[u8], block: &str) -> Option<Vec<u8>> {
    let block = block.strip_suffix('\n').unwrap_or(block).as_bytes();
    let Some(at) = file.windows(block.len()).position(|window| window == block) else {
        return Some(file.to_vec());
    };
    let (before, after) = (&file[..at], &file[at + block.len()..]);
    match after.strip_prefix(b"\n") {
        Some(b"") if before.is_empty() => None,
        Some(after) => Some([before, after].concat()),
        None => Some(before.strip_suffix(b"\n").unwrap_or(before).to_vec()),
    }
}

/// The block in the file, from its first to its last line.
pub(super) fn find(file: &str) -> Option<&str> {
    let start = file.find("# >>> git-arborist")?;
    let close = "# <<< git-arborist <<<";
    let end = start + file[start..].find(close)? + close.len();
    Some(&file[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "# >>> git-arborist >>>\ncheck\n# <<< git-arborist <<<\n";

    #[test]
    fn every_byte_is_as_it_was_after_the_block_is_taken_out() {
        for file in [
            "",
            "\n",
            "npm test",
            "npm test\n",
            "#!/bin/sh",
            "#!/bin/sh\n",
            "#!/bin/sh\nnpm test\n",
            "#!/bin/sh\r\nx",
        ] {
            let with = insert(Some(file.as_bytes()), BLOCK);
            assert_eq!(find(std::str::from_utf8(&with).unwrap()), BLOCK.strip_suffix('\n'));
            assert_eq!(remove(&with, BLOCK).as_deref(), Some(file.as_bytes()), "{file:?}");
        }
        assert_eq!(remove(&insert(None, BLOCK), BLOCK), None);
    }

    #[test]
    fn the_block_stands_below_the_line_that_names_the_interpreter() {
        let with = insert(Some(b"#!/bin/sh\nnpm test\n"), BLOCK);
        assert!(with.starts_with(b"#!/bin/sh\n# >>>") && with.ends_with(b"<<<\nnpm test\n"));
    }
}
