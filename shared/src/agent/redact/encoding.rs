//! The forms in which a value may be printed: base64, hexadecimal, percent-encoded, and as JSON escapes it.

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// All encoded forms of a value.
pub(super) fn encoded(value: &[u8]) -> Vec<Vec<u8>> {
    let standard: Vec<Vec<u8>> = (0..3).map(|before| base64(value, before)).collect();
    let url_safe = standard.iter().map(|text| {
        let letter = |byte: &u8| match byte {
            b'+' => b'-',
            b'/' => b'_',
            other => *other,
        };
        text.iter().map(letter).collect()
    });
    let lower: Vec<u8> = value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
    let mut forms: Vec<Vec<u8>> = url_safe.collect();
    forms.extend(standard);
    forms.push(lower.to_ascii_uppercase());
    forms.push(lower);
    // `encodeURIComponent` leaves more characters as they are than RFC 3986, and `quote` of Python keeps slashes.
    for kept in ["-_.~", "-_.~/", "-_.~!*'()"] {
        let upper = percent(value, kept.as_bytes());
        forms.push(upper.replace("%20", "+").into_bytes());
        forms.push(lower_escapes(&upper).into_bytes());
        forms.push(upper.into_bytes());
    }
    // Some programs escape every byte.
    let upper: String = value.iter().map(|byte| format!("%{byte:02X}")).collect();
    forms.push(lower_escapes(&upper).into_bytes());
    forms.push(upper.into_bytes());
    forms.push(as_json(value));
    forms
}

/// The characters of the value in base64, if `before` other bytes (modulo 3) precede it. Characters that also depend on
/// neighbouring bytes are left out.
fn base64(value: &[u8], before: usize) -> Vec<u8> {
    let bits = value.len() * 8;
    let first = (6 - before * 8 % 6) % 6;
    let bit = |at: usize| value[at / 8] >> (7 - at % 8) & 1;
    let characters = (first..).step_by(6).take_while(|at| at + 6 <= bits);
    characters.map(|at| BASE64[usize::from((at..at + 6).fold(0, |sum, at| sum << 1 | bit(at)))]).collect()
}

fn percent(value: &[u8], kept: &[u8]) -> String {
    let mut text = String::new();
    for byte in value {
        if byte.is_ascii_alphanumeric() || kept.contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The same with lower-case digits in its escapes.
fn lower_escapes(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (digits, rest) = part.split_at(2);
        format!("{text}%{}{rest}", digits.to_ascii_lowercase())
    })
}

/// The value as it appears in a JSON string.
fn as_json(value: &[u8]) -> Vec<u8> {
    let quoted = serde_json::to_string(&String::from_utf8_lossy(value)).unwrap_or_default();
    let inside = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or(&quoted).as_bytes().to_vec()
}

/// Decodes as much base64 as there is; anything else ends it.
pub(super) fn decode_base64(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| {
        let byte = match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        };
        BASE64.iter().position(|letter| *letter == byte)
    };
    let (mut bits, mut count, mut decoded) = (0_usize, 0, Vec::new());
    for value in text.iter().map_while(|byte| digit(*byte)) {
        (bits, count) = ((bits << 6 | value) & 0xffff, count + 6);
        if count >= 8 {
            count -= 8;
            decoded.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_at_every_place_in_base64() {
        let value = b"hunter2secretvalue";
        // The value alone, behind one byte, and behind two: `printf xhunter2… | base64`.
        for (before, text) in [
            (0, "aHVudGVyMnNlY3JldHZhbHVl"),
            (1, "eGh1bnRlcjJzZWNyZXR2YWx1ZQ=="),
            (2, "eHhodW50ZXIyc2VjcmV0dmFsdWU="),
        ] {
            let form = String::from_utf8(base64(value, before)).unwrap();
            assert!(text.contains(&form) && form.len() > 20, "{form}");
        }
        assert_eq!(decode_base64(b"YWxpY2U6cGFzcw=="), b"alice:pass");
    }

    #[test]
    fn a_value_is_percent_encoded_as_programs_do_it() {
        let forms: Vec<String> =
            encoded(b"a b/c(d)").into_iter().map(|form| String::from_utf8(form).unwrap()).collect();
        for form in [
            "a%20b%2Fc%28d%29",
            "a%20b%2fc%28d%29",
            "a+b%2Fc%28d%29",
            "a%20b/c%28d%29",
            "a%20b%2Fc(d)",
            "%61%20%62%2F%63%28%64%29",
            "%61%20%62%2f%63%28%64%29",
        ] {
            assert!(forms.iter().any(|found| found == form), "{form}: {forms:?}");
        }
    }
}
