//! Uploads in parts.

use super::*;

impl Service {
    fn complete(
        &self,
        input: &CompleteMultipartUploadInput,
        pending: &Pending,
    ) -> S3Result<Stored> {
        let wanted = input.multipart_upload.as_ref().and_then(|upload| upload.parts.as_ref());
        let Some(wanted) = wanted.filter(|parts| !parts.is_empty()) else {
            return Err(s3_error!(MalformedXML, "You must specify at least one part"));
        };
        let mut parts: Vec<(u32, &PartData)> = Vec::new();
        for part in wanted {
            let number = part_number(part.part_number.unwrap_or(0))?;
            if parts.last().is_some_and(|(last, _)| *last >= number) {
                return Err(s3_error!(
                    InvalidPartOrder,
                    "The list of parts was not in ascending order. Parts must be ordered by part number."
                ));
            }
            let known = pending.parts.get(&number);
            let good = |known: &&PartData| {
                part.e_tag.as_ref().is_some_and(|etag| etag.value() == known.etag)
            };
            let Some(known) =
                known.filter(good).filter(|known| compare(&sums!(part), &known.sums).is_ok())
            else {
                return Err(s3_error!(
                    InvalidPart,
                    "One or more of the specified parts could not be found. The part may not have been \
                     uploaded, or the specified entity tag may not match the part's entity tag."
                ));
            };
            if let Some(algorithm) = pending.algorithm
                && !pending.full_object
                && algorithm.of(&sums!(part)).is_none()
            {
                return Err(s3_error!(
                    InvalidRequest,
                    "The upload was created using a {} checksum. The complete request must include the \
                     checksum for each part. It was missing for part {} in the request.",
                    algorithm.name().to_lowercase(),
                    number
                ));
            }
            parts.push((number, known));
        }
        let all_but_last = &parts[..parts.len() - 1];
        if all_but_last.iter().any(|(_, part)| part.data.len() < MIN_PART) {
            return Err(s3_error!(
                EntityTooSmall,
                "Your proposed upload is smaller than the minimum allowed size"
            ));
        }
        let data = Data::concat(parts.iter().map(|(_, part)| &part.data));
        if data.len() > MAX_OBJECT {
            return Err(s3_error!(
                EntityTooLarge,
                "Your proposed upload exceeds the maximum allowed size"
            ));
        }
        if input.mpu_object_size.is_some_and(|size| size as u64 != data.len()) {
            return Err(s3_error!(
                InvalidRequest,
                "The provided 'x-amz-mp-object-size' header does not match what was computed."
            ));
        }
        let mut info = pending.info.clone();
        let mut computed = Checksum::default();
        if let Some(algorithm) = pending.algorithm {
            let values: Vec<(&str, u64)> = parts
                .iter()
                .map(|(_, part)| {
                    (algorithm.of(&part.sums).map_or("", String::as_str), part.data.len())
                })
                .collect();
            let value = if pending.full_object {
                algorithm.joined(&values).unwrap_or_else(|| algorithm.compute(&data))
            } else {
                algorithm.composite(&values.iter().map(|(value, _)| *value).collect::<Vec<_>>())
            };
            algorithm.set(&mut computed, value);
        }
        let mut expected = sums!(input);
        if let (Some(algorithm), false) = (pending.algorithm, pending.full_object)
            && let Some(value) = algorithm.of(&expected).cloned()
            && !value.contains('-')
        {
            // Some clients leave out the number of parts.
            algorithm.set(&mut expected, format!("{value}-{}", parts.len()));
        }
        compare(&expected, &computed)?;
        info.set_checksums(
            &computed,
            if pending.full_object { "FULL_OBJECT" } else { "COMPOSITE" },
        );
        let digest = if self.store.fast || data.is_sparse() {
            self.store.unique()
        } else {
            let digests: Vec<u8> = parts
                .iter()
                .flat_map(|(_, part)| {
                    (0..16)
                        .map(|i| u8::from_str_radix(&part.etag[2 * i..2 * i + 2], 16).unwrap_or(0))
                })
                .collect();
            hex(&md5_of(&bytes::Bytes::from(digests).into()))
        };
        info.etag = format!("{digest}-{}", parts.len());
        info.len = data.len();
        info.parts = parts.iter().map(|(_, part)| part.data.len()).collect();
        info.modified = Some(SystemTime::now());
        Ok(Stored { data, info })
    }

    pub(super) async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = req.input;
        let algorithm = match &input.checksum_algorithm {
            None => None,
            Some(name) => Some(Algorithm::named(name.as_str()).ok_or_else(|| {
                s3_error!(InvalidRequest, "Checksum algorithm provided is unsupported.")
            })?),
        };
        let crc64 = algorithm == Some(Algorithm::Crc64Nvme);
        let full_object = match input.checksum_type.as_ref().map(ChecksumType::as_str) {
            None => crc64,
            Some(ChecksumType::FULL_OBJECT) => true,
            Some(_) => false,
        };
        let sha = matches!(algorithm, Some(Algorithm::Sha1 | Algorithm::Sha256));
        if (full_object && sha) || (!full_object && crc64) {
            return Err(s3_error!(
                InvalidRequest,
                "The checksum type cannot be used with the specified checksum algorithm."
            ));
        }
        let id = self.store.unique();
        let pending = Pending {
            key: input.key.clone(),
            info: info!(input),
            algorithm,
            full_object,
            parts: BTreeMap::new(),
        };
        let output = CreateMultipartUploadOutput {
            bucket: Some(input.bucket.clone()),
            key: Some(input.key.clone()),
            upload_id: Some(id.clone()),
            checksum_algorithm: algorithm
                .map(|algorithm| ChecksumAlgorithm::from_static(algorithm.name())),
            checksum_type: algorithm.map(|_| {
                ChecksumType::from_static(if full_object { "FULL_OBJECT" } else { "COMPOSITE" })
            }),
            server_side_encryption: pending.info.sse.clone().map(ServerSideEncryption::from),
            ssekms_key_id: pending.info.sse_kms_key_id.clone(),
            ..Default::default()
        };
        self.store.bucket(&input.bucket, |bucket| {
            bucket.uploads.insert(id, pending);
            Ok(())
        })?;
        Ok(S3Response::new(output))
    }

    pub(super) async fn upload_part(
        &self,
        req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let mut input = req.input;
        let number = part_number(input.part_number)?;
        if input.content_length.is_some_and(|len| len as u64 > MAX_SINGLE) {
            return Err(s3_error!(
                EntityTooLarge,
                "Your proposed upload exceeds the maximum allowed size"
            ));
        }
        let wanted = self.store.bucket(&input.bucket, |bucket| {
            Ok(bucket.upload(&input.upload_id, &input.key)?.algorithm)
        })?;
        let body = input.body.take();
        let promise = Promise {
            content_md5: input.content_md5.as_deref(),
            sums: sums!(input),
            algorithm: wanted,
            headers: &req.headers,
            trailers: req.trailing_headers,
        };
        let received = receive(body, promise, self.store.fast).await?;
        if let Some(wanted) = wanted {
            let other = Algorithm::ALL
                .into_iter()
                .find(|one| *one != wanted && one.of(&received.sums).is_some());
            if let Some(other) = other {
                return Err(s3_error!(
                    InvalidRequest,
                    "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
                    wanted.name().to_lowercase(),
                    other.name().to_lowercase()
                ));
            }
        }
        let etag = self.store.etag(&received.data, received.md5);
        let mut output = UploadPartOutput { e_tag: Some(strong(&etag)), ..Default::default() };
        set_sums!(output, received.sums.clone());
        let part = PartData { data: received.data, etag, sums: received.sums };
        self.store.bucket(&input.bucket, |bucket| {
            bucket.upload(&input.upload_id, &input.key)?.parts.insert(number, part);
            Ok(())
        })?;
        Ok(S3Response::new(output))
    }

    pub(super) async fn upload_part_copy(
        &self,
        req: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreConditions>().is_some() {
            input.copy_source_if_match = None;
        }
        let number = part_number(input.part_number)?;
        let algorithm = self.store.bucket(&input.bucket, |bucket| {
            Ok(bucket.upload(&input.upload_id, &input.key)?.algorithm)
        })?;
        let source = self.source(&input.copy_source, &conditions!(input, copy))?;
        let len = source.data.len();
        let range = match &input.copy_source_range {
            None => 0..len,
            Some(text) => match Range::parse(text) {
                Ok(Range::Int { first, last: Some(last) }) if last < len => first..last + 1,
                Ok(Range::Int { last: Some(_), .. }) => {
                    return Err(s3_error!(
                        InvalidArgument,
                        "Range specified is not valid for source object of size: {}",
                        len
                    ));
                }
                _ => {
                    return Err(s3_error!(
                        InvalidArgument,
                        "The x-amz-copy-source-range value must be of the form bytes=first-last where first \
                         and last are the zero-based offsets of the first and last bytes to copy"
                    ));
                }
            },
        };
        if range.end - range.start > MAX_SINGLE {
            return Err(s3_error!(
                InvalidRequest,
                "The specified copy source is larger than the maximum allowable size for a copy source: {}",
                MAX_SINGLE
            ));
        }
        let data = source.data.slice(range);
        let mut sums = Checksum::default();
        if let Some(algorithm) = algorithm {
            algorithm.set(&mut sums, algorithm.compute(&data));
        }
        let etag = self.copied(&data);
        let mut result = CopyPartResult {
            e_tag: Some(strong(&etag)),
            last_modified: Some(SystemTime::now().into()),
            ..Default::default()
        };
        set_sums!(result, sums.clone());
        self.store.bucket(&input.bucket, |bucket| {
            let parts = &mut bucket.upload(&input.upload_id, &input.key)?.parts;
            parts.insert(number, PartData { data, etag, sums });
            Ok(())
        })?;
        let copy_part_result = Some(result);
        Ok(S3Response::new(UploadPartCopyOutput { copy_part_result, ..Default::default() }))
    }

    pub(super) async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreConditions>().is_some() {
            (input.if_match, input.if_none_match) = (None, None);
        }
        let mut pending = self.store.bucket(&input.bucket, |bucket| {
            Ok(bucket.upload(&input.upload_id, &input.key)?.clone())
        })?;
        if req.extensions.get::<RefuseChecksumsOfParts>().is_some() {
            let parts = input.multipart_upload.as_ref().and_then(|upload| upload.parts.as_ref());
            let has_sums = |part: &CompletedPart| {
                Algorithm::ALL.into_iter().any(|one| one.of(&sums!(part)).is_some())
            };
            if parts.is_some_and(|parts| parts.iter().any(has_sums)) {
                return Err(s3_error!(
                    MalformedXML,
                    "The XML you provided was not well-formed or did not validate"
                ));
            }
            // Such a store does not support them.
            pending.algorithm = None;
        }
        let habits = req.extensions.get::<&'static [Habit]>();
        if habits.is_some_and(|habits| habits.contains(&Habit::EqualParts)) {
            let lens: Vec<_> = pending.parts.values().map(|part| part.data.len()).collect();
            let (first, last) = (lens.first(), lens.last());
            let equal = lens[..lens.len().saturating_sub(1)].iter().all(|len| Some(len) == first);
            if !equal || last > first {
                return Err(s3_error!(
                    InvalidPart,
                    "All non-trailing parts must have the same length."
                ));
            }
        }
        // Checksums are computed without the lock. Of two concurrent requests, the first to remove the upload wins.
        let stored = Arc::new(self.complete(&input, &pending)?);
        let info = stored.info.clone();
        self.store.bucket(&input.bucket, |bucket| {
            bucket.upload(&input.upload_id, &input.key)?;
            bucket.may_write(&input.key, input.if_match.as_ref(), input.if_none_match.as_ref())?;
            bucket.uploads.remove(&*input.upload_id);
            bucket.objects.insert(input.key.clone(), stored);
            Ok(())
        })?;
        let mut output = CompleteMultipartUploadOutput {
            e_tag: Some(strong(&info.etag)),
            location: Some(format!("/{}/{}", input.bucket, list::encode(&input.key))),
            bucket: Some(input.bucket),
            key: Some(input.key),
            server_side_encryption: info.sse.clone().map(ServerSideEncryption::from),
            ssekms_key_id: info.sse_kms_key_id.clone(),
            ..Default::default()
        };
        let (sums, kind) = checksums(&info);
        set_sums!(output, sums);
        output.checksum_type = kind;
        Ok(S3Response::new(output))
    }

    pub(super) async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = req.input;
        self.store.bucket(&input.bucket, |bucket| {
            bucket.upload(&input.upload_id, &input.key)?;
            bucket.uploads.remove(&*input.upload_id);
            Ok(())
        })?;
        Ok(S3Response::with_status(
            AbortMultipartUploadOutput::default(),
            http::StatusCode::NO_CONTENT,
        ))
    }
}
