//! The control interface for programs in other languages: `GET /_server/...`, without a signature.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::Handle;
use crate::answer::Answer;
use crate::fault::{Fault, What, When};
use crate::log::{Counters, Request};
use crate::shape::Shape;

type Query = BTreeMap<String, String>;

fn query(uri: &Uri) -> Query {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let pairs = uri.query().unwrap_or("").split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(k, v)| (decode(k), decode(v)))
        .collect()
}

fn number<T: std::str::FromStr>(query: &Query, name: &str) -> Result<Option<T>, String> {
    let parse =
        |text: &String| text.parse().map_err(|_| format!("{name} is {text:?}; give a number"));
    query.get(name).map(parse).transpose()
}

/// Serves one request of the control interface.
pub(crate) fn serve(handle: &Handle, uri: &Uri) -> Answer {
    let query = query(uri);
    let (kind, result) = match uri.path() {
        "/_server/shape" => ("application/json", shape(handle, &query)),
        "/_server/reset" => ("application/json", Ok(counters(&handle.reset_log()).to_string())),
        "/_server/log" => ("application/x-ndjson", Ok(lines(&handle.log()))),
        "/_server/keys" => ("application/json", keys(handle, &query)),
        "/_server/uploads" => ("application/json", uploads(handle, &query)),
        "/_server/fault" => ("application/json", fault(handle, &query)),
        "/_server/clear" => {
            handle.clear_faults();
            ("application/json", Ok("{}".to_owned()))
        }
        path => (
            "",
            Err(format!(
                "{path} is not known; there are shape, reset, log, keys, uploads, fault, clear"
            )),
        ),
    };
    let (status, kind, body) = match result {
        Ok(body) => (StatusCode::OK, kind, body),
        Err(message) => (StatusCode::BAD_REQUEST, "text/plain", message + "\n"),
    };
    let mut answer = Response::new(s3s::Body::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// Sets `latency_ms`, `connection_mbps` and `total_mbps` in megabytes per second; the others are off.
fn shape(handle: &Handle, query: &Query) -> Result<String, String> {
    let millis = |name| {
        number::<f64>(query, name).map(|ms| Duration::from_secs_f64(ms.unwrap_or(0.0) / 1e3))
    };
    let rate = |name| {
        number::<f64>(query, name).map(|mb| mb.filter(|mb| *mb > 0.0).map(|mb| (mb * 1e6) as u64))
    };
    let shape = Shape {
        first_byte_latency: millis("latency_ms")?,
        bytes_per_second_per_connection: rate("connection_mbps")?,
        total_bytes_per_second: rate("total_mbps")?,
    };
    handle.shape(shape);
    Ok(json!({
        "latency_ms": shape.first_byte_latency.as_secs_f64() * 1e3,
        "connection_bytes_per_second": shape.bytes_per_second_per_connection,
        "total_bytes_per_second": shape.total_bytes_per_second,
    })
    .to_string())
}

fn counters(counters: &Counters) -> Value {
    let statuses: BTreeMap<String, usize> =
        counters.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect();
    json!({
        "requests": counters.operations.values().sum::<usize>(),
        "operations": counters.operations,
        "statuses": statuses,
        "bytes_in": counters.bytes_in,
        "bytes_out": counters.bytes_out,
        "connections": counters.connections,
        "peak_in_flight": counters.peak_in_flight,
    })
}

fn lines(log: &[Request]) -> String {
    let line = |request: &Request| {
        json!({
            "index": request.index,
            "operation": request.operation,
            "method": request.method,
            "bucket": request.bucket,
            "key": request.key,
            "query": request.query,
            "headers": request.headers,
            "signed": request.signed,
            "status": request.status,
            "bytes_in": request.bytes_in,
            "bytes_out": request.bytes_out,
            "at_ms": request.at.as_secs_f64() * 1e3,
            "duration_ms": request.duration.map(|took| took.as_secs_f64() * 1e3),
            "connection": request.connection,
            "faulted": request.faulted,
        })
        .to_string()
            + "\n"
    };
    log.iter().map(line).collect()
}

fn bucket<'a>(handle: &Handle, query: &'a Query) -> Result<&'a String, String> {
    let name = query.get("bucket").ok_or("no bucket is named; add bucket=NAME")?;
    let known = handle.0.store.lock().contains_key(name);
    if known { Ok(name) } else { Err(format!("there is no bucket {name:?}; make it first")) }
}

fn keys(handle: &Handle, query: &Query) -> Result<String, String> {
    Ok(json!(handle.keys(bucket(handle, query)?)).to_string())
}

fn uploads(handle: &Handle, query: &Query) -> Result<String, String> {
    let uploads = handle.uploads(bucket(handle, query)?);
    let one = |upload: &crate::Upload| {
        let parts: BTreeMap<String, u64> =
            upload.parts.iter().map(|(n, len)| (n.to_string(), *len)).collect();
        json!({"id": upload.id, "key": upload.key, "parts": parts})
    };
    Ok(Value::Array(uploads.iter().map(one).collect()).to_string())
}

/// Injects a fault: `what=NAME` of `stall`, `whole-for-206` and `status` (with `status` and `code`), with `operation`, `key`,
/// one of `nth`, `from`, `every`, and `times`.
fn fault(handle: &Handle, query: &Query) -> Result<String, String> {
    let what = match query.get("what").ok_or("there is no fault; add what=NAME")?.as_str() {
        "stall" => What::Stall,
        "whole-for-206" => What::WholeFor206,
        "status" => {
            let code = query.get("code").map_or("InternalError", String::as_str);
            What::status(number(query, "status")?.unwrap_or(500), code)
        }
        other => return Err(format!("{other:?} is not one of stall, whole-for-206, status")),
    };
    let when = match (number(query, "nth")?, number(query, "from")?, number(query, "every")?) {
        (Some(k), None, None) => When::Nth(k),
        (None, Some(k), None) => When::From(k),
        (None, None, Some(n)) => When::Every(n),
        (None, None, None) => When::All,
        _ => return Err("nth, from and every are given together; choose one".to_owned()),
    };
    let mut fault = Fault::new(when, what).times(number(query, "times")?.unwrap_or(usize::MAX));
    fault.operation = query.get("operation").map(String::as_str);
    fault.key = query.get("key").map(String::as_str);
    handle.inject(fault);
    Ok("{}".to_owned())
}
