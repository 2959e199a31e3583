//! The head of a request, checked before the HTTP parser sees it. The parser repairs or ignores
//! some of what is refused here; other servers would read it differently.

use std::str;

/// Length of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// Exactly so many bytes follow.
    Length(u64),
    /// The body is in chunks.
    Chunked,
    /// Bytes follow that are not a request: after CONNECT, or after an upgrade.
    Open,
}

/// Finds the end of a head, also one with lines that end in a bare LF. `from` is where the search starts.
pub(crate) fn end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut start = from;
    while let Some(found) = bytes[start..].iter().position(|byte| *byte == b'\n') {
        let next = start + found + 1;
        match bytes.get(next..) {
            Some([b'\n', ..]) => return Some(next + 1),
            Some([b'\r', b'\n', ..]) => return Some(next + 2),
            _ => start = next,
        }
    }
    None
}

/// Checks a whole head, including the empty line at its end.
pub(crate) fn check(head: &[u8]) -> Result<BodyFraming, &'static str> {
    let head = head
        .strip_suffix(b"\r\n\r\n")
        .ok_or("a line does not end in CR LF")?;
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut next = || -> Option<Result<&[u8], &'static str>> {
        let line = lines.next()?;
        // The last line has lost its end above.
        let is_last = line.as_ptr_range().end == head.as_ptr_range().end;
        Some(match line.strip_suffix(b"\r") {
            Some(line) if !is_last => visible(line),
            None if is_last => visible(line),
            _ => Err("a line does not end in CR LF"),
        })
    };
    let method = request_line(next().ok_or("the request line is missing")??)?;
    let (mut length, mut chunked, mut upgrade) = (None, false, false);
    while let Some(line) = next() {
        let (name, value) = header(line?)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            let parsed = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            let parsed: u64 = parsed
                .filter(|_| digits)
                .ok_or("`Content-Length` is not a number")?;
            if length.replace(parsed).is_some() {
                return Err("`Content-Length` is duplicated");
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err("`Transfer-Encoding` is not `chunked`");
            }
            if chunked {
                return Err("`Transfer-Encoding` is duplicated");
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            upgrade = true;
        }
    }
    let opens = method == b"CONNECT" || upgrade;
    match (length, chunked) {
        (Some(_), true) => Err("it has both `Content-Length` and `Transfer-Encoding`"),
        (Some(1..), false) | (None, true) if opens => Err("a request to open a tunnel has a body"),
        _ if opens => Ok(BodyFraming::Open),
        (None, true) => Ok(BodyFraming::Chunked),
        (length, false) => Ok(BodyFraming::Length(length.unwrap_or_default())),
    }
}

/// Checks that a line has no control characters except tabs.
fn visible(line: &[u8]) -> Result<&[u8], &'static str> {
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err("a line contains control characters");
    }
    Ok(line)
}

/// Checks `METHOD target HTTP/1.x`, and returns the method.
fn request_line(line: &[u8]) -> Result<&[u8], &'static str> {
    let parts: Vec<_> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = parts[..] else {
        return Err("the request line is not a method, a target and a version with one blank between them");
    };
    if !is_token(method) || target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
        return Err("the request line contains invalid characters");
    }
    if !matches!(version, b"HTTP/1.1" | b"HTTP/1.0") {
        return Err("the version is not HTTP/1.1 or HTTP/1.0");
    }
    Ok(method)
}

/// Splits `name: value`; the value is without the blanks around it.
fn header(line: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err("a header continues on a second line");
    }
    let colon = line.iter().position(|byte| *byte == b':');
    let (name, value) = line.split_at(colon.ok_or("a header does not have a `:`")?);
    if !is_token(name) {
        return Err("the name of a header contains invalid characters");
    }
    Ok((name, value[1..].trim_ascii()))
}

fn is_token(bytes: &[u8]) -> bool {
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str) -> Result<BodyFraming, &'static str> {
        check(format!("POST http://a.example/ HTTP/1.1\r\n{text}\r\n").as_bytes())
    }

    #[test]
    fn a_head_says_how_long_its_body_is() {
        assert_eq!(headers("Host: a\r\n"), Ok(BodyFraming::Length(0)));
        assert_eq!(headers(""), Ok(BodyFraming::Length(0)));
        assert_eq!(headers("content-length:7 \r\n"), Ok(BodyFraming::Length(7)));
        assert_eq!(
            headers("Transfer-Encoding: Chunked\r\n"),
            Ok(BodyFraming::Chunked)
        );
        assert_eq!(headers("Upgrade: websocket\r\n"), Ok(BodyFraming::Open));
        assert_eq!(check(b"CONNECT a:443 HTTP/1.1\r\n\r\n"), Ok(BodyFraming::Open));
    }

    #[test]
    fn ambiguous_heads_are_errors() {
        for text in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length:\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding : chunked\r\n",
            "A: b\nC: d\r\n",
            "A: b\rC: d\r\n",
            "A: b\0\r\n",
            "A: b\r\n c\r\n",
            " A: b\r\n",
            "A\r\n",
            ": b\r\n",
            "Upgrade: websocket\r\nContent-Length: 5\r\n",
        ] {
            assert!(headers(text).is_err(), "{text:?}");
        }
        for text in [
            "GET  / HTTP/1.1\r\n\r\n",
            "GET /\r\n\r\n",
            "GET / HTTP/2.0\r\n\r\n",
            "GET / HTTP/1.1\n\n",
            "GET / HTTP/1.1\r\nA: b\n\r\n",
            "\r\nGET / HTTP/1.1\r\n\r\n",
            "G\x7fT / HTTP/1.1\r\n\r\n",
            "GET /\u{e9} HTTP/1.1\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
        ] {
            assert!(check(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_end_is_found_also_after_bare_line_feeds() {
        assert_eq!(end(b"a\r\nb\r\n\r\nc", 0), Some(8));
        assert_eq!(end(b"a\n\nb", 0), Some(3));
        assert_eq!(end(b"a\r\nb\r\n\r", 0), None);
        assert_eq!(end(b"", 0), None);
    }
}
