//! The metadata service: its responses, and its silence.

use super::*;
use crate::connection::tls::client_config;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use tf_fs_object_store::http::Tls;

/// Starts a service that lets so many connections wait, and then responds: a token, and 404 to all else. Returns its
/// URL, and a receiver that gets a message for each connection.
fn service(silent: usize) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (says, hears) = channel();
    std::thread::spawn(move || {
        let mut waiting = Vec::new();
        for (n, connection) in listener.incoming().flatten().enumerate() {
            let _ = says.send(());
            if n < silent {
                waiting.push(connection);
            } else {
                std::thread::spawn(move || serve(connection));
            }
        }
    });
    (url, hears)
}

fn serve(mut connection: TcpStream) {
    let mut lines = BufReader::new(connection.try_clone().unwrap()).lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        while lines.next().is_some_and(|header| !header.is_empty()) {}
        let answer = match line.starts_with("PUT ") {
            true => {
                "200 X\r\nx-aws-ec2-metadata-token-ttl-seconds: 21600\r\ncontent-length: 1\r\n\r\nt"
            }
            false => "404 X\r\ncontent-length: 0\r\n\r\n",
        };
        if connection.write_all(format!("HTTP/1.1 {answer}").as_bytes()).is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn an_error_response_and_one_lost_packet_are_not_silence() {
    let case = async |silent: usize, is_silent: bool| {
        let tls = Tls { verify: true, ..Tls::default() };
        let mut sources = Sources::new(&Arc::new(client_config(&tls).unwrap()));
        // The longer one is for a token and a response, also on a busy machine.
        sources.imds_timeout = Duration::from_millis(if is_silent { 300 } else { 2000 });
        let (url, hears) = service(silent);
        let imds = sources.metadata_service().endpoint(&url).unwrap().build();
        let answer = sources.listen(|| imds.get("/latest/meta-data/placement/region")).await;
        let answer = causes(&answer.unwrap_err());
        assert_eq!(answer.contains("404"), !is_silent, "{silent}: {answer}");
        assert_eq!(sources.is_silent(), is_silent, "{silent}: {answer}");
        let connections = hears.try_iter().count();
        assert!(connections >= silent.saturating_add(1).min(2), "{silent}: {connections}");
        // The source that is tried next.
        let config = sources.config(&sources.local);
        let provider = ImdsCredentialsProvider::builder().configure(&config).imds_client(imds);
        let provider = provider.build();
        let credentials = sources.listen(|| provider.provide_credentials()).await;
        let credentials = causes(&credentials.unwrap_err());
        assert_eq!(credentials.contains("404"), !is_silent, "{silent}: {credentials}");
        assert_eq!(sources.is_silent(), is_silent, "{silent}: {credentials}");
    };
    // Each waits for the service.
    tokio::join!(case(0, false), case(1, false), case(usize::MAX, true));
}
