//! Pictures: checks that they match their declared format, are complete, and not absurdly large.
//! Nothing is decoded or drawn.

use std::io::{BufRead, BufReader, Read};

use cellblock_protocol::{Blob, BlobReader, ImageMime};

use super::{DecodingLimits, OutputError};

const PNG: &[u8; 8] = b"\x89PNG\r\n\x1a\n";
/// Maximum offset of a drawing's root element.
const SVG_PROLOGUE: u64 = 4096;

/// Width and height of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: u32,
    pub(super) height: u32,
}

/// Checks a picture; a drawing has no size of its own.
pub(super) fn check(
    mime: ImageMime,
    blob: &Blob,
    limits: &DecodingLimits,
) -> Result<Option<Size>, OutputError> {
    let size = match mime {
        ImageMime::Png => png(blob)?,
        ImageMime::Svg => return svg(blob, limits).map(|()| None),
        ImageMime::Jpeg => compressed(mime, blob, |start| start.starts_with(b"\xff\xd8\xff"))?,
        ImageMime::Gif => compressed(mime, blob, |start| {
            start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a")
        })?,
        ImageMime::Webp => compressed(mime, blob, |start| {
            start.starts_with(b"RIFF") && start[8..].starts_with(b"WEBP")
        })?,
    };
    if size.width == 0 || size.height == 0 {
        return Err(OutputError::Picture {
            mime: mime.as_str(),
            what: "it has no pixels",
        });
    }
    let longer = size.width.max(size.height);
    if longer > limits.side {
        let what = "picture with a side in pixels";
        return Err(OutputError::Limit {
            what,
            limit: limits.side.into(),
            actual: longer.into(),
        });
    }
    Ok(Some(size))
}

fn broken(what: &'static str) -> OutputError {
    OutputError::Picture {
        mime: ImageMime::Png.as_str(),
        what,
    }
}

/// Reads all chunks of a PNG with their checksums, to the end.
fn png(blob: &Blob) -> Result<Size, OutputError> {
    let mut reader = BufReader::new(blob.reader());
    if &take::<8>(&mut reader)? != PNG {
        return Err(broken("it does not begin with the signature"));
    }
    let mut size = None;
    loop {
        let length = u32::from_be_bytes(take(&mut reader)?);
        let kind: [u8; 4] = take(&mut reader)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&kind);
        match (&kind, size, length) {
            (b"IHDR", None, 13) => {
                let fields: [u8; 13] = take(&mut reader)?;
                crc.update(&fields);
                let [w0, w1, w2, w3, h0, h1, h2, h3, ..] = fields;
                let (width, height) = (
                    u32::from_be_bytes([w0, w1, w2, w3]),
                    u32::from_be_bytes([h0, h1, h2, h3]),
                );
                size = Some(Size { width, height });
            }
            (b"IHDR", ..) => return Err(broken("it has a second or a misshapen header")),
            (_, None, _) => return Err(broken("it does not begin with its header")),
            _ => skim(&mut reader, length.into(), &mut crc)?,
        }
        if u32::from_be_bytes(take(&mut reader)?) != crc.finalize() {
            return Err(broken("the checksum of a chunk is wrong"));
        }
        if &kind == b"IEND" {
            break;
        }
    }
    if !reader.fill_buf()?.is_empty() {
        return Err(broken("bytes follow its end"));
    }
    size.ok_or_else(|| broken("it has no header"))
}

fn take<const N: usize>(reader: &mut BufReader<BlobReader<'_>>) -> Result<[u8; N], OutputError> {
    let mut bytes = [0; N];
    match reader.read_exact(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(broken("it ends in the middle"))
        }
        Err(error) => Err(error.into()),
    }
}

fn skim(
    reader: &mut BufReader<BlobReader<'_>>,
    mut left: u64,
    crc: &mut crc32fast::Hasher,
) -> Result<(), OutputError> {
    while left > 0 {
        let piece = reader.fill_buf()?;
        let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if length == 0 {
            return Err(broken("it ends in the middle"));
        }
        crc.update(&piece[..length]);
        reader.consume(length);
        left -= length as u64;
    }
    Ok(())
}

fn compressed(mime: ImageMime, blob: &Blob, signed: impl Fn(&[u8; 12]) -> bool) -> Result<Size, OutputError> {
    let wrong = |what| OutputError::Picture {
        mime: mime.as_str(),
        what,
    };
    let mut start = [0; 12];
    let read = blob.reader().read_exact(&mut start);
    if read.is_err() || !signed(&start) {
        return Err(wrong("it does not begin with the signature"));
    }
    let size = imagesize::reader_size(BufReader::new(blob.reader()))
        .map_err(|_| wrong("it does not say its size"))?;
    let pixels = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    Ok(Size {
        width: pixels(size.width),
        height: pixels(size.height),
    })
}

fn svg(blob: &Blob, limits: &DecodingLimits) -> Result<(), OutputError> {
    if blob.len() > limits.document_bytes {
        let what = "drawing in bytes";
        return Err(OutputError::Limit {
            what,
            limit: limits.document_bytes,
            actual: blob.len(),
        });
    }
    let mut text = String::new();
    let wrong = |what| OutputError::Picture {
        mime: ImageMime::Svg.as_str(),
        what,
    };
    match blob.reader().read_to_string(&mut text) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            return Err(wrong("it is not UTF-8"));
        }
        Err(error) => return Err(error.into()),
    }
    match text.find("<svg") {
        Some(at) if at as u64 <= SVG_PROLOGUE => Ok(()),
        _ => Err(wrong("it has no svg element where one should begin")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(data.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend(kind);
        bytes.extend(data);
        bytes.extend(crc32fast::hash(&bytes[4..]).to_be_bytes());
        bytes
    }

    fn png_of(width: u32, height: u32) -> Vec<u8> {
        let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        [
            PNG.to_vec(),
            chunk(*b"IHDR", &header),
            chunk(*b"IDAT", b"pixels"),
            chunk(*b"IEND", b""),
        ]
        .concat()
    }

    fn checked(mime: ImageMime, bytes: &[u8]) -> Result<Option<Size>, String> {
        check(mime, &Blob::Memory(bytes.to_vec()), &DecodingLimits::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_png_has_the_size_that_its_header_says() {
        assert_eq!(
            checked(ImageMime::Png, &png_of(640, 480)),
            Ok(Some(Size {
                width: 640,
                height: 480
            }))
        );
    }

    #[test]
    fn a_truncated_png_is_rejected() {
        let png = png_of(3, 3);
        for end in 0..png.len() {
            assert!(checked(ImageMime::Png, &png[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn a_png_with_a_changed_byte_is_rejected() {
        let png = png_of(3, 3);
        for at in 0..png.len() {
            let mut changed = png.clone();
            changed[at] ^= 1;
            assert!(checked(ImageMime::Png, &changed).is_err(), "{at}");
        }
    }

    #[test]
    fn a_png_with_bytes_after_its_end_is_rejected() {
        let polyglot = [png_of(3, 3), b"PK\x03\x04".to_vec()].concat();
        assert_eq!(
            checked(ImageMime::Png, &polyglot),
            Err("image/png from a kernel is malformed: bytes follow its end".into())
        );
    }

    #[test]
    fn a_chunk_of_four_gigabytes_is_rejected() {
        let mut png = png_of(3, 3);
        png[33..37].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(
            checked(ImageMime::Png, &png),
            Err("image/png from a kernel is malformed: it ends in the middle".into())
        );
    }

    #[test]
    fn pictures_without_pixels_or_with_too_many_are_rejected() {
        assert_eq!(
            checked(ImageMime::Png, &png_of(0, 3)),
            Err("image/png from a kernel is malformed: it has no pixels".into())
        );
        assert_eq!(
            checked(ImageMime::Png, &png_of(3, 16_385)),
            Err("picture with a side in pixels of 16385 from a kernel is over the limit of 16384".into())
        );
    }

    #[test]
    fn headers_of_other_formats_contain_the_size() {
        let gif = b"GIF89a\x05\x00\x07\x00\x00\x00\x00;";
        assert_eq!(
            checked(ImageMime::Gif, gif),
            Ok(Some(Size { width: 5, height: 7 }))
        );
        let jpeg =
            b"\xff\xd8\xff\xc0\x00\x11\x08\x00\x07\x00\x05\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01\xff\xd9";
        assert_eq!(
            checked(ImageMime::Jpeg, jpeg),
            Ok(Some(Size { width: 5, height: 7 }))
        );
        let webp = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\x04\x80\x01\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(
            checked(ImageMime::Webp, webp),
            Ok(Some(Size { width: 5, height: 7 }))
        );
        for mime in [ImageMime::Gif, ImageMime::Jpeg, ImageMime::Webp] {
            assert!(checked(mime, &png_of(3, 3)).is_err());
            assert!(checked(mime, b"").is_err());
        }
    }

    #[test]
    fn a_drawing_is_text_with_an_svg_element_within_its_limit() {
        assert_eq!(checked(ImageMime::Svg, b"<?xml version='1.0'?><svg/>"), Ok(None));
        assert!(checked(ImageMime::Svg, b"<html/>").is_err());
        assert!(checked(ImageMime::Svg, b"<svg>\xff</svg>").is_err());
        let large = DecodingLimits {
            document_bytes: 3,
            ..DecodingLimits::default()
        };
        assert!(check(ImageMime::Svg, &Blob::Memory(b"<svg/>".to_vec()), &large).is_err());
    }
}
