//! Decompresses a loose object (RFC 1950 and RFC 1951). libgit2 and git look up an object by its id and may find it
//! elsewhere; here it is known which file was read.

/// The maximal length of a code in bits.
const MAX_CODE_LEN: usize = 15;
/// Codes up to this length are looked up in a table. Nearly all are that short.
const TABLE_BITS: u8 = 9;
/// The order in which the lengths of the code length codes are stored.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// The base length of each symbol, and the number of extra bits.
#[rustfmt::skip]
const LENGTHS: [(usize, u8); 29] = [
    (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0), (11, 1), (13, 1), (15, 1), (17, 1), (19, 2),
    (23, 2), (27, 2), (31, 2), (35, 3), (43, 3), (51, 3), (59, 3), (67, 4), (83, 4), (99, 4), (115, 4), (131, 5),
    (163, 5), (195, 5), (227, 5), (258, 0),
];
/// The base distance of each symbol, and the number of extra bits.
#[rustfmt::skip]
const DISTANCES: [(usize, u8); 30] = [
    (1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (7, 1), (9, 2), (13, 2), (17, 3), (25, 3), (33, 4), (49, 4), (65, 5),
    (97, 5), (129, 6), (193, 6), (257, 7), (385, 7), (513, 8), (769, 8), (1025, 9), (1537, 9), (2049, 10), (3073, 10),
    (4097, 11), (6145, 11), (8193, 12), (12289, 12), (16385, 13), (24577, 13),
];

/// The content of a stream; `None` if it is broken, or longer than `most` bytes.
pub(super) fn inflate(stream: &[u8], most: usize) -> Option<Vec<u8>> {
    let (first, second) = (*stream.first()?, *stream.get(1)?);
    let is_zlib = first & 15 == 8 && u16::from_be_bytes([first, second]) % 31 == 0 && second & 32 == 0;
    let mut bits = Bits { bytes: stream.get(2..)?, at: 0, held: 0, count: 0 };
    let mut out = Vec::new();
    let mut is_last = !is_zlib;
    while !is_last {
        is_last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => stored(&mut bits, &mut out)?,
            1 => packed(&mut bits, &mut out, &Codes::fixed()?, most)?,
            2 => {
                let codes = Codes::read(&mut bits)?;
                packed(&mut bits, &mut out, &codes, most)?;
            }
            _ => return None,
        }
        if out.len() > most {
            return None;
        }
    }
    is_zlib.then_some(out)
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    held: u32,
    count: u8,
}

impl Bits<'_> {
    /// Loads bits until `count` of them, at most 16, are held or the stream ends.
    fn hold(&mut self, count: u8) {
        while self.count < count
            && let Some(byte) = self.bytes.get(self.at)
        {
            self.held |= u32::from(*byte) << self.count;
            (self.at, self.count) = (self.at + 1, self.count + 8);
        }
    }

    fn take(&mut self, count: u8) -> Option<usize> {
        self.hold(count);
        if self.count < count {
            return None;
        }
        let taken = self.held & ((1 << count) - 1);
        (self.held, self.count) = (self.held >> count, self.count - count);
        usize::try_from(taken).ok()
    }
}

/// The Huffman codes of one alphabet: how many codes there are of each length, and their symbols in order.
struct Code {
    counts: [u16; MAX_CODE_LEN + 1],
    symbols: Vec<u16>,
    /// Length and symbol of the code at the front of the next bits. A length of 0 stands for a longer code.
    short: Vec<(u8, u16)>,
}

impl Code {
    /// `None` if there are more codes than their lengths allow. zlib refuses these too.
    fn new(lengths: &[u8]) -> Option<Self> {
        let mut counts = [0; MAX_CODE_LEN + 1];
        lengths.iter().for_each(|length| counts[usize::from(*length)] += 1);
        counts[0] = 0;
        let mut symbols: Vec<u16> = (0..).take(lengths.len()).collect();
        symbols.retain(|symbol| lengths[usize::from(*symbol)] != 0);
        symbols.sort_by_key(|symbol| (lengths[usize::from(*symbol)], *symbol));
        let mut left = 1_i32;
        for count in &counts[1..] {
            left = (left << 1) - i32::from(*count);
            if left < 0 {
                return None;
            }
        }
        let short = Self::table(&counts, &symbols);
        Some(Self { counts, symbols, short })
    }

    /// Codes are stored with the highest bit first, everything else with the lowest.
    fn table(counts: &[u16; MAX_CODE_LEN + 1], symbols: &[u16]) -> Vec<(u8, u16)> {
        let mut table = vec![(0, 0); 1 << TABLE_BITS];
        let (mut code, mut rest) = (0_usize, symbols);
        for length in 1..=TABLE_BITS {
            let (here, longer) = rest.split_at(usize::from(counts[usize::from(length)]).min(rest.len()));
            for symbol in here {
                let begin = code.reverse_bits() >> (usize::BITS - u32::from(length));
                for entry in table.iter_mut().skip(begin).step_by(1 << length) {
                    *entry = (length, *symbol);
                }
                code += 1;
            }
            (code, rest) = (code << 1, longer);
        }
        table
    }

    fn read(&self, bits: &mut Bits<'_>) -> Option<usize> {
        bits.hold(TABLE_BITS);
        let next = usize::try_from(bits.held & ((1 << TABLE_BITS) - 1)).ok()?;
        match self.short[next] {
            (length @ 1.., symbol) if length <= bits.count => {
                bits.take(length)?;
                Some(usize::from(symbol))
            }
            _ => self.read_long(bits),
        }
    }

    fn read_long(&self, bits: &mut Bits<'_>) -> Option<usize> {
        let (mut code, mut first, mut index) = (0usize, 0usize, 0usize);
        for count in &self.counts[1..] {
            let count = usize::from(*count);
            code |= bits.take(1)?;
            if code < first + count {
                return self.symbols.get(index + code - first).map(|symbol| usize::from(*symbol));
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

/// The two alphabets of a block: bytes and lengths, and distances.
struct Codes {
    main: Code,
    distances: Code,
}

impl Codes {
    fn fixed() -> Option<Self> {
        let mut lengths = [8; 288];
        lengths[144..256].fill(9);
        lengths[256..280].fill(7);
        Some(Self { main: Code::new(&lengths)?, distances: Code::new(&[5; 30])? })
    }

    fn read(bits: &mut Bits<'_>) -> Option<Self> {
        let (main, distances, count) = (bits.take(5)? + 257, bits.take(5)? + 1, bits.take(4)? + 4);
        let mut lengths = [0u8; 19];
        for place in &ORDER[..count] {
            lengths[*place] = u8::try_from(bits.take(3)?).ok()?;
        }
        let code = Code::new(&lengths)?;
        let mut lengths: Vec<u8> = Vec::with_capacity(main + distances);
        while lengths.len() < main + distances {
            let (length, count) = match code.read(bits)? {
                16 => (*lengths.last()?, bits.take(2)? + 3),
                17 => (0, bits.take(3)? + 3),
                18 => (0, bits.take(7)? + 11),
                length => (u8::try_from(length).ok()?, 1),
            };
            lengths.extend(std::iter::repeat_n(length, count));
        }
        let end = lengths.get(main..main + distances).filter(|_| lengths.len() == main + distances)?;
        Some(Self { main: Code::new(&lengths[..main])?, distances: Code::new(end)? })
    }
}

fn stored(bits: &mut Bits<'_>, out: &mut Vec<u8>) -> Option<()> {
    // Whole bytes that are already held belong to the block.
    bits.at -= usize::from(bits.count / 8);
    (bits.held, bits.count) = (0, 0);
    let [low, high, not_low, not_high] = *bits.bytes.get(bits.at..bits.at + 4)? else { return None };
    let length = u16::from_le_bytes([low, high]);
    if length != !u16::from_le_bytes([not_low, not_high]) {
        return None;
    }
    let from = bits.at + 4;
    bits.at = from + usize::from(length);
    out.extend(bits.bytes.get(from..bits.at)?);
    Some(())
}

fn packed(bits: &mut Bits<'_>, out: &mut Vec<u8>, codes: &Codes, most: usize) -> Option<()> {
    loop {
        match codes.main.read(bits)? {
            256 => return Some(()),
            byte if byte < 256 => out.push(u8::try_from(byte).ok()?),
            symbol => {
                let (base, extra) = *LENGTHS.get(symbol - 257)?;
                let length = base + bits.take(extra)?;
                let (base, extra) = *DISTANCES.get(codes.distances.read(bits)?)?;
                let from = out.len().checked_sub(base + bits.take(extra)?)?;
                (from..from + length).for_each(|at| out.push(out[at]));
            }
        }
        if out.len() > most {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::inflate;
    use crate::process::Program;

    #[test]
    fn every_kind_of_stream_that_git_writes_is_read() {
        let folder = tempfile::tempdir().unwrap();
        // Stored, fixed and dynamic blocks, and matches that overlap themselves.
        let script = "git init -q . && for level in 0 1 9; do for text in a \"$(seq 1 3000)\" \"$(printf %04000d 0)\"; do
            printf %s \"$text\" > file; echo $level >> file
            id=$(git -c core.compression=$level hash-object -w file)
            cp file \"content-$id\"; cp .git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-) \"stream-$id\"
          done; done; ls | sed -n 's/^stream-//p'";
        let ended = Program::new("sh").args(["-ec", script]).dir(folder.path()).finish().unwrap();
        let ids = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(ids.lines().count(), 9, "{ids}");
        for id in ids.lines() {
            let read = |kind: &str| fs::read(folder.path().join(format!("{kind}-{id}"))).unwrap();
            let (content, stream) = (read("content"), read("stream"));
            let object = [format!("blob {}\0", content.len()).as_bytes(), &content].concat();
            assert_eq!(inflate(&stream, 1 << 20).as_ref(), Some(&object));
            assert_eq!(inflate(&stream, 5), None);
            assert_eq!(inflate(&stream[..stream.len() / 2], 1 << 20), None);
        }
        assert_eq!(inflate(b"", 1), None);
        assert_eq!(inflate(b"PK", 1), None);
    }
}
