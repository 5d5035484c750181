//! Faults that wait for a test, or run a piece of it.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Client, PATIENCE, server};
use s3_server::{Fault, Gate, What, When};

#[test]
fn gates_and_hooks() {
    let server = Arc::new(server());
    server.put("bucket", "k", "old");
    let gate = Gate::new();
    server.inject(Fault::new(When::Nth(1), What::Pause(gate.clone())).operation("GetObject"));
    let reader = {
        let server = Arc::clone(&server);
        std::thread::spawn(move || Client::new(&server).get("/bucket/k").ok().text())
    };
    assert!(gate.wait_for(1, PATIENCE));
    assert!(!gate.wait_for(2, Duration::from_millis(10)));
    server.put("bucket", "k", "new");
    gate.open();
    assert_eq!(reader.join().expect("read"), "new");

    let gate = Gate::new();
    server.clear_faults();
    server.inject(Fault::new(When::Nth(1), What::PauseDone(gate.clone())).operation("PutObject"));
    let writer = {
        let server = Arc::clone(&server);
        std::thread::spawn(move || Client::new(&server).put("/bucket/k", b"done").ok().status)
    };
    assert!(gate.wait_for(1, PATIENCE));
    assert_eq!(server.get("bucket", "k").expect("there").bytes, "done");
    assert!(!writer.is_finished());
    gate.open();
    assert_eq!(writer.join().expect("written"), 200);

    server.clear_faults();
    let hook = What::run(|handle, request| {
        let key = request.key.as_deref().expect("a key");
        handle.put("bucket", key, format!("replaced before {}", request.operation));
    });
    server.inject(Fault::new(When::Nth(2), hook).key("k"));
    server.inject(Fault::new(When::Nth(2), What::Header("x-both".into(), "1".into())).key("k"));
    let mut client = Client::new(&server);
    assert_eq!(client.get("/bucket/k").ok().text(), "done");
    let answer = client.get("/bucket/k").ok();
    assert_eq!(
        (answer.text().as_str(), answer.header("x-both")),
        ("replaced before GetObject", Some("1"))
    );
}
