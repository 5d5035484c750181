//! Pages of listings.

use crate::bucket::{Container, FOLDER, marks_directory};
use crate::request::Call;
use bytes::Bytes;
use std::collections::BTreeSet;
use tf_fs_object_store::http::xml::elements;
use tf_fs_object_store::http::{HttpError, Method, date, number};
use tf_fs_object_store::{ErrorKind, ListOptions, Object, ObjectMeta, Page, StoreError as _};

/// A page has at most 5,000 names, each of at most 1,024 characters.
const MOST: usize = 64 << 20;

/// Lists a page of the blobs of a container.
pub(crate) async fn blobs(
    container: &Container,
    options: &ListOptions,
    token: Option<&str>,
) -> Result<Page, HttpError> {
    let mut call =
        Call::container(Method::GET, &container.name).with_query("prefix", &options.prefix);
    if options.delimiter {
        call = call.with_query("delimiter", "/");
    }
    // Metadata tells which blobs mark directories.
    call = call.with_query("include", "metadata");
    // The blob that marks the directory itself has no `/`, so it is not among them. A listing of the children of a
    // directory that has some, or of one name, does not need it.
    let is_tree = !options.delimiter && options.max_keys != Some(1);
    let is_first = token.is_none();
    let has_marker = async {
        if is_first && is_tree { is_folder(container, &options.prefix).await } else { Ok(false) }
    };
    let (xml, has_marker) = tokio::try_join!(request(container, call, options, token), has_marker)?;
    let mut page = page_of_blobs(&xml, options.delimiter).map_err(HttpError::Invalid)?;
    let is_empty = page.objects.is_empty() && page.common_prefixes.is_empty();
    let is_empty_folder = is_first && !is_tree && is_empty;
    let has_marker = has_marker || is_empty_folder && is_folder(container, &options.prefix).await?;
    if has_marker && page.objects.first().is_none_or(|first| first.key != options.prefix) {
        page.objects.insert(0, Object::new(options.prefix.clone(), ObjectMeta::new(0)));
    }
    Ok(page)
}

/// Returns whether the blob of this name, without the `/` at its end, marks a directory.
pub(crate) async fn is_folder(container: &Container, prefix: &str) -> Result<bool, HttpError> {
    match prefix.strip_suffix('/') {
        None | Some("" | "." | "..") => Ok(false),
        // The marker of another directory.
        Some(key) if key.ends_with('/') => Ok(false),
        Some(key) => match container.properties(key).await {
            Ok(response) => Ok(marks_directory(&response)),
            Err(failed) if matches!(failed.kind(), ErrorKind::NotFound | ErrorKind::Denied) => {
                Ok(false)
            }
            Err(failed) => Err(failed),
        },
    }
}

/// Lists a page of the containers of an account, as directories.
pub(crate) async fn containers(
    account: &Container,
    options: &ListOptions,
    token: Option<&str>,
) -> Result<Page, HttpError> {
    let call = Call::account(Method::GET).with_query("prefix", &options.prefix);
    let xml = request(account, call, options, token).await?;
    let mut page = Page::default();
    listing(&xml, |path, text| match (path, text) {
        ([_, "Containers", "Container", "Name"], Some(name)) => {
            page.common_prefixes.push(format!("{name}/"));
        }
        ([_, "NextMarker"], Some(token)) if !token.is_empty() => page.next = Some(token),
        _ => {}
    })
    .map_err(HttpError::Invalid)?;
    Ok(page)
}

async fn request(
    container: &Container,
    mut call: Call,
    options: &ListOptions,
    token: Option<&str>,
) -> Result<Bytes, HttpError> {
    call = call.with_query("comp", "list");
    if let Some(token) = token {
        call = call.with_query("marker", token);
    }
    let most = options.max_keys.unwrap_or(container.page);
    call = call.with_query("maxresults", most.to_string());
    let response = container.account.send(call, &[200]).await?;
    response.collect(MOST).await
}

/// Calls `on` as [`elements`] does.
///
/// # Errors
/// As [`elements`], and if the document is not a listing: then it does not tell that there is nothing.
fn listing(xml: &[u8], mut on: impl FnMut(&[&str], Option<String>)) -> Result<(), String> {
    let mut is_listing = false;
    elements(xml, |path, text| {
        is_listing |= path == ["EnumerationResults"];
        on(path, text);
    })?;
    if is_listing { Ok(()) } else { Err("it is not a listing".to_owned()) }
}

/// Parses a page of blobs. A blob that marks a directory has its key and `/` in the page.
pub(crate) fn page_of_blobs(xml: &[u8], has_delimiter: bool) -> Result<Page, String> {
    let mut page = Page::default();
    let mut folders = BTreeSet::new();
    let (mut key, mut meta, mut is_folder) = (None, ObjectMeta::default(), false);
    listing(xml, |path, text| match (path, text) {
        ([_, "NextMarker"], Some(token)) if !token.is_empty() => page.next = Some(token),
        ([_, "Blobs", "BlobPrefix", "Name"], Some(name)) => page.common_prefixes.push(name),
        ([_, "Blobs", "Blob", "Name"], Some(name)) => key = Some(name),
        ([_, "Blobs", "Blob", "Properties", name], Some(text)) => match *name {
            "Content-Length" => meta.size = number(&text),
            "Last-Modified" => meta.modified = date(&text),
            // It has no quotes here, but in headers.
            "Etag" if !text.is_empty() => {
                meta.etag = Some(match text.contains('"') {
                    true => text,
                    false => format!("\"{text}\""),
                });
            }
            // In accounts with a hierarchical namespace.
            "ResourceType" => is_folder |= text == "directory",
            _ => {}
        },
        ([_, "Blobs", "Blob", "Metadata", name], Some(text))
            if name.eq_ignore_ascii_case(FOLDER) =>
        {
            is_folder |= text == "true";
        }
        ([_, "Blobs", "Blob"], None) => {
            let (meta, is_folder) = (std::mem::take(&mut meta), std::mem::take(&mut is_folder));
            match key.take() {
                Some(key) if is_folder && !key.ends_with('/') => {
                    folders.insert(key + "/");
                }
                key => page.objects.extend(key.map(|key| Object::new(key, meta))),
            }
        }
        _ => {}
    })?;
    if !folders.is_empty() && has_delimiter {
        folders.extend(std::mem::take(&mut page.common_prefixes));
        page.common_prefixes = folders.into_iter().collect();
    } else if !folders.is_empty() {
        page.objects.extend(folders.into_iter().map(|key| Object::new(key, ObjectMeta::new(0))));
        page.objects.sort_by(|a, b| a.key.cmp(&b.key));
        page.objects.dedup_by(|a, b| a.key == b.key);
    }
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
            <Blob><Name>c</Name><Properties><Etag>W/&quot;0x8E&quot;</Etag></Properties></Blob></Blobs>\
            <NextMarker>m &lt;1</NextMarker></EnumerationResults>";
        let page = page_of_blobs(xml, true).unwrap();
        assert_eq!(page.common_prefixes, ["a b /"]);
        assert_eq!(page.next.as_deref(), Some("m <1"));
        let [first, second] = &page.objects[..] else { panic!("{page:?}") };
        assert_eq!((&*first.key, &*second.key), (" a&b", "c"));
        let wanted = ObjectMeta::new(7)
            .with_etag("\"0x8D\"".to_owned())
            .with_modified(UNIX_EPOCH + Duration::from_secs(9));
        let weak = ObjectMeta::default().with_etag("W/\"0x8E\"".to_owned());
        assert_eq!((&first.meta, &second.meta), (&wanted, &weak));
        let end = page_of_blobs(
            b"<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>",
            true,
        )
        .unwrap();
        assert!(end.objects.is_empty() && end.next.is_none());
        for other in ["", "ok", "<html></html>", "<Error/>"] {
            assert!(page_of_blobs(other.as_bytes(), true).is_err(), "{other}");
        }
    }

    #[test]
    fn blobs_that_mark_directories_are_no_files() {
        let xml = b"<EnumerationResults><Blobs>\
            <Blob><Name>d</Name><Properties><Content-Length>0</Content-Length></Properties>\
            <Metadata><Hdi_isfolder>true</Hdi_isfolder></Metadata></Blob>\
            <Blob><Name>d-1</Name><Metadata><x>true</x></Metadata></Blob>\
            <BlobPrefix><Name>d/</Name></BlobPrefix>\
            <Blob><Name>e</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob>\
            <Blob><Name>f/</Name><Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>\
            </Blobs></EnumerationResults>";
        let keys = |page: &Page| page.objects.iter().map(|o| o.key.clone()).collect::<Vec<_>>();
        let page = page_of_blobs(xml, true).unwrap();
        assert_eq!(
            (keys(&page).join(" "), page.common_prefixes.join(" ")),
            ("d-1 f/".into(), "d/ e/".into())
        );
        let page = page_of_blobs(xml, false).unwrap();
        assert_eq!(keys(&page), ["d-1", "d/", "e/", "f/"]);
    }
}
