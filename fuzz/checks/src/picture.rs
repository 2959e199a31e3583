//! Pictures: as they are, and as PNG whose checksums are made right, without which no change to one
//! would get far.

use cellblock_interpreter::output::fuzz;

const SIGNATURE: usize = 8;

/// Reads bytes as a picture of each format.
pub(crate) fn check(data: &[u8]) {
    fuzz::image(data);
    if let Some(png) = summed(data) {
        fuzz::image(&png);
    }
}

/// Corrects the checksum of each chunk, as far as the chunks go.
fn summed(data: &[u8]) -> Option<Vec<u8>> {
    let mut png = data.to_vec();
    png.get_mut(..SIGNATURE)?.copy_from_slice(b"\x89PNG\r\n\x1a\n");
    let mut at = SIGNATURE;
    while let Some(length) = png.get(at..at + 4).and_then(|it| it.first_chunk()) {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let end = at.checked_add(8)?.checked_add(length)?;
        let Some(chunk) = png.get(at + 4..end) else { break };
        let sum = crc32fast::hash(chunk).to_be_bytes();
        let Some(place) = png.get_mut(end..end + 4) else {
            break;
        };
        place.copy_from_slice(&sum);
        at = end + 4;
    }
    Some(png)
}
