//! A client that uploads more than it may, and slowly, and looks at what the server keeps of it meanwhile.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::wait::until;

/// Bytes of a piece.
const PIECE: usize = 16 << 10;
/// Time in which a server answers that needs nothing more from the client.
const SOON: Duration = Duration::from_secs(20);
/// Time in which the answer to a piece comes, if it has one.
const PAUSE: Duration = Duration::from_secs(1);

/// A request that uploads a file to a server in the process of the test.
#[derive(Clone, Debug)]
pub struct UploadProbe {
    address: SocketAddr,
    head: String,
    before: String,
    folder: PathBuf,
}

/// An answer to an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadAnswer {
    /// Its status.
    pub status: u16,
    /// Its head and body.
    pub text: String,
    /// Maximum number of bytes that the server had in its folder of uploads before it answered.
    pub spooled: u64,
}

impl UploadProbe {
    /// Describes a request whose body is the file, to a server whose uploads stand in a folder.
    pub fn new(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        folder: &Path,
    ) -> Self {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        Self {
            address,
            head,
            before: String::new(),
            folder: folder.to_owned(),
        }
    }

    /// Sends the file as the part `file` of a form, after parts with these names and texts.
    #[must_use]
    pub fn in_a_form(mut self, texts: &[(&str, &str)]) -> Self {
        self.head
            .push_str("content-type: multipart/form-data; boundary=cut\r\n");
        let part = |name: &str| format!("--cut\r\ncontent-disposition: form-data; name=\"{name}\"");
        for (name, text) in texts {
            let _ = write!(self.before, "{}\r\n\r\n{text}\r\n", part(name));
        }
        let _ = write!(self.before, "{}; filename=\"a.csv\"\r\n\r\n", part("file"));
        self
    }

    /// Asserts that a server with a quota of so many bytes refuses a declared upload before its
    /// first byte and a chunked one at the quota, that it ends a slow one, and that it keeps
    /// nothing.
    ///
    /// # Panics
    ///
    /// Panics if it does not.
    pub async fn assert_bounded(&self, quota: u64) {
        let declared = self.declared(64 << 20).await;
        self.assert_refused(&declared, quota);
        assert_eq!(declared.spooled, 0, "{declared:?}");
        let chunked = self.chunked(quota).await;
        self.assert_refused(&chunked, quota);
        assert!(chunked.spooled <= quota, "{chunked:?}");
        let slow = self.slow().await;
        assert_eq!(slow.status, 408, "{slow:?}");
        assert!(slow.text.contains("`uploads.timeout`"), "{slow:?}");
        until("nothing is left of the uploads", || self.spooled() == 0).await;
    }

    fn assert_refused(&self, answer: &UploadAnswer, quota: u64) {
        assert_eq!(answer.status, 429, "{}: {answer:?}", self.head);
        for part in [
            "`upload_bytes_per_day`",
            &format!("its limit is {quota} bytes"),
            "are used",
            "send less",
        ] {
            assert!(answer.text.contains(part), "{part}: {answer:?}");
        }
    }

    /// Announces a file of so many bytes, and sends none of them.
    ///
    /// # Panics
    ///
    /// Panics if there is no answer.
    pub async fn declared(&self, bytes: u64) -> UploadAnswer {
        let mut stream = self.open(&format!("content-length: {bytes}")).await;
        self.answer(&mut stream, 0).await
    }

    /// Sends a file without its size until the server answers.
    ///
    /// # Panics
    ///
    /// Panics if the server takes much more than `quota` bytes.
    pub async fn chunked(&self, quota: u64) -> UploadAnswer {
        let mut stream = self.open("transfer-encoding: chunked").await;
        let (mut sent, mut spooled) = (0, 0);
        let mut piece = self.before.clone().into_bytes();
        // An empty piece would end the body.
        piece.resize(piece.len().max(PIECE), b'1');
        loop {
            let frame = format!("{:x}\r\n", piece.len());
            for part in [frame.as_bytes(), &piece, b"\r\n"] {
                stream.write_all(part).await.unwrap();
            }
            sent += piece.len() as u64;
            spooled = spooled.max(self.spooled());
            // Nothing is on its way when the answer comes: that would break the connection.
            if sent >= quota && timeout(PAUSE, stream.readable()).await.is_ok() {
                return self.answer(&mut stream, spooled).await;
            }
            assert!(
                sent < quota + (1 << 20),
                "{}: {sent} bytes were taken, {spooled} of them are kept",
                self.head
            );
            piece = vec![b'1'; PIECE];
        }
    }

    /// Sends a byte of a small file now and then until the server answers.
    ///
    /// # Panics
    ///
    /// Panics if there is no answer.
    pub async fn slow(&self) -> UploadAnswer {
        let size = self.before.len() + 100_000;
        let mut stream = self.open(&format!("content-length: {size}")).await;
        stream.write_all(self.before.as_bytes()).await.unwrap();
        let sending = async {
            while timeout(Duration::from_millis(100), stream.readable())
                .await
                .is_err()
            {
                stream.write_all(b"1").await.unwrap();
            }
            self.answer(&mut stream, 0).await
        };
        timeout(2 * SOON, sending).await.unwrap()
    }

    /// Returns the bytes that this process has in the folder, also in files without a name.
    ///
    /// # Panics
    ///
    /// Panics if its own descriptors cannot be listed.
    pub fn spooled(&self) -> u64 {
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let open = open
            .map(|entry| entry.path())
            .filter(|entry| fs::read_link(entry).is_ok_and(|target| target.starts_with(&self.folder)));
        let named = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let all = open.chain(named.map(|entry| entry.path()));
        // The folder itself is open while it is listed.
        let files = all.filter_map(|path| fs::metadata(path).ok().filter(fs::Metadata::is_file));
        let files: BTreeMap<_, _> = files.map(|file| (file.ino(), file.len())).collect();
        files.values().sum()
    }

    async fn open(&self, length: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!("{}{length}\r\n\r\n", self.head);
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    async fn answer(&self, stream: &mut TcpStream, spooled: u64) -> UploadAnswer {
        let mut text = Vec::new();
        let read = timeout(SOON, stream.read_to_end(&mut text)).await;
        read.unwrap_or_else(|_| panic!("no answer without the body: {}", self.head))
            .unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        UploadAnswer {
            status: status.unwrap_or_default(),
            text,
            spooled,
        }
    }
}
