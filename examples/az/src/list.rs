//! Pages of listings.

use crate::container::Container;
use crate::request::Call;
use crate::xml::elements;
use bytes::Bytes;
use tf_fs_object_store::http::{Failed, Method, date, number};
use tf_fs_object_store::{ListOptions, Object, ObjectMeta, Page};

/// A page has at most 5,000 names, each of at most 1,024 characters.
const MOST: usize = 64 << 20;

/// A page of the blobs of a container.
pub(crate) async fn blobs(
    container: &Container,
    options: &ListOptions,
    token: Option<&str>,
) -> Result<Page, Failed> {
    let mut call =
        Call::container(Method::GET, &container.name).with_query("prefix", &options.prefix);
    if options.delimiter {
        call = call.with_query("delimiter", "/");
    }
    page_of_blobs(&request(container, call, options, token).await?).map_err(Failed::Invalid)
}

/// A page of the containers of an account, as directories.
pub(crate) async fn containers(
    account: &Container,
    options: &ListOptions,
    token: Option<&str>,
) -> Result<Page, Failed> {
    let call = Call::account(Method::GET).with_query("prefix", &options.prefix);
    let xml = request(account, call, options, token).await?;
    let mut page = Page::default();
    elements(&xml, |path, text| match (path, text) {
        ([_, "Containers", "Container", "Name"], Some(name)) => {
            page.common_prefixes.push(format!("{name}/"));
        }
        ([_, "NextMarker"], Some(token)) if !token.is_empty() => page.next = Some(token),
        _ => {}
    })
    .map_err(Failed::Invalid)?;
    Ok(page)
}

async fn request(
    container: &Container,
    mut call: Call,
    options: &ListOptions,
    token: Option<&str>,
) -> Result<Bytes, Failed> {
    call = call.with_query("comp", "list");
    if let Some(token) = token {
        call = call.with_query("marker", token);
    }
    let most = options.max_keys.unwrap_or(container.page);
    call = call.with_query("maxresults", most.to_string());
    let response = container.account.send(call, &[200]).await?;
    response.collect(MOST, container.settings.stall_timeout).await
}

fn page_of_blobs(xml: &[u8]) -> Result<Page, String> {
    let mut page = Page::default();
    let (mut key, mut meta) = (None, ObjectMeta::default());
    elements(xml, |path, text| match (path, text) {
        ([_, "NextMarker"], Some(token)) if !token.is_empty() => page.next = Some(token),
        ([_, "Blobs", "BlobPrefix", "Name"], Some(name)) => page.common_prefixes.push(name),
        ([_, "Blobs", "Blob", "Name"], Some(name)) => key = Some(name),
        ([_, "Blobs", "Blob", "Properties", name], Some(text)) => match *name {
            "Content-Length" => meta.size = number(&text),
            "Last-Modified" => meta.modified = date(&text),
            // Here it has no quotes; in headers it has.
            "Etag" if !text.is_empty() => {
                meta.etag = Some(format!("\"{}\"", text.trim_matches('"')));
            }
            _ => {}
        },
        ([_, "Blobs", "Blob"], None) => {
            let meta = std::mem::take(&mut meta);
            page.objects.extend(key.take().map(|key| Object::new(key, meta)));
        }
        _ => {}
    })?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_page_is_read_exactly() {
        let xml = b"<?xml version=\"1.0\"?><EnumerationResults ContainerName=\"c\"><Prefix>a</Prefix><Blobs>\
            <BlobPrefix><Name>a b /</Name></BlobPrefix>\
            <Blob><Name> a&amp;b</Name><Properties><Content-Length>7</Content-Length><Etag>0x8D</Etag>\
            <Last-Modified>Thu, 01 Jan 1970 00:00:09 GMT</Last-Modified></Properties><OrMetadata /></Blob>\
            <Blob><Name>c</Name></Blob></Blobs><NextMarker>m &lt;1</NextMarker></EnumerationResults>";
        let page = page_of_blobs(xml).unwrap();
        assert_eq!(page.common_prefixes, ["a b /"]);
        assert_eq!(page.next.as_deref(), Some("m <1"));
        let [first, second] = &page.objects[..] else { panic!("{page:?}") };
        assert_eq!((&*first.key, &*second.key), (" a&b", "c"));
        let wanted = ObjectMeta::new(7)
            .with_etag("\"0x8D\"".to_owned())
            .with_modified(UNIX_EPOCH + Duration::from_secs(9));
        assert_eq!((&first.meta, &second.meta), (&wanted, &ObjectMeta::default()));
        let end = page_of_blobs(b"<E><Blobs /><NextMarker /></E>").unwrap();
        assert!(end.objects.is_empty() && end.next.is_none());
    }
}
