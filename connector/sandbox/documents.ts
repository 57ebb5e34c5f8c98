/** A sentiment of the sentence `phrase`, the `n`th of its review. */
const sentiment = (phrase: string, n: number): string =>
  `coalesce('{"id":' || (r.id * 100 + ${n}) || ',"reviewId":' || r.id || ',' || ${phrase}.sentiment || '}', '')`

const rated = (n: number, question: string, code: string, rating: string): string =>
  `coalesce('{"id":' || (r.id * 10 + ${n}) || ',"question":"${question}","response":"' || ${rating}::INTEGER || '","questionType":"Single Choice (Rating)","questionCode":"${code}"}', '')`

/** Parts that may be empty, with a comma between those that are not. */
const joined = (...parts: ReadonlyArray<string>): string =>
  `list_aggregate(list_filter([${parts.join(', ')}], lambda part: part <> ''), 'string_agg', ',')`

/**
 * Reviews as operation 6 exports them: JSON text whose attributes that are null are left out, without the two that only come
 * when asked for and without the closing brace.
 */
export const documents = `
CREATE MACRO member(name, json) AS coalesce(',"' || name || '":' || json, '');
CREATE MACRO instant(t) AS strftime(t, '%Y-%m-%dT%H:%M:%S.%gZ');
CREATE MACRO quote(t) AS to_json(t)::VARCHAR;
CREATE MACRO mood(score) AS CASE WHEN score >= 4.5 THEN 'Extremely Positive' WHEN score >= 3.5 THEN 'Positive'
  WHEN score >= 2.5 THEN 'Neutral' WHEN score >= 1.5 THEN 'Negative' ELSE 'Extremely Negative' END;

CREATE VIEW written AS SELECT r.*,
  concat_ws(' ', p1.sentence, p2.sentence, p3.sentence) AS comment, p1.tonality AS tone, p1.category AS category,
  (p1.score + coalesce(p2.score, 0) + coalesce(p3.score, 0)) / (1 + (p2.n IS NOT NULL)::INTEGER + (p3.n IS NOT NULL)::INTEGER) AS score,
  (p1.n IS NOT NULL)::INTEGER + (p2.n IS NOT NULL)::INTEGER + (p3.n IS NOT NULL)::INTEGER AS sentiment_count,
  ${joined(sentiment('p1', 1), sentiment('p2', 2), sentiment('p3', 3))} AS sentiments
FROM review r
LEFT JOIN phrase p1 ON p1.n = r.first_phrase
LEFT JOIN phrase p2 ON p2.n = r.second_phrase
LEFT JOIN phrase p3 ON p3.n = r.third_phrase;

CREATE VIEW document AS SELECT r.id, r.modified, r.visit_record_id,
  coalesce(r.original_brand, '[{"id":' || b.id || member('name', quote(b.name)) || '}]') AS brand,
  coalesce(r.original, '{"id":' || r.id
    || member('surveyBarCode', quote(r.survey_bar_code))
    || member('location', '{"id":' || l.id || member('name', quote(l.name)) || '}')
    || member('provider', '{"id":' || p.id || member('name', quote(p.name)) || member('npi', quote(p.npi)) || '}')
    || member('source', '{"id":' || s.id || member('name', quote(s.name)) || '}')
    || member('avatar', '{"id":' || l.avatar_id || member('name', quote(l.name)) || member('type', quote(l.avatar_type)) || '}')
    || member('mentionTime', quote(instant(r.mention)))
    || member('modifiedTime', quote(instant(r.modified)))
    || member('rating', r.rating)
    || member('reviewScore', round(r.score, 2))
    || ',"contents":[' || coalesce(${joined(
      rated(1, 'How courteous was our staff?', 'STAFF', 'r.staff_rating'),
      rated(2, 'How easy was it to get an appointment?', 'ACCESS', 'r.access_rating'),
      `coalesce('{"id":' || (r.id * 10 + 3) || ',"question":' || CASE WHEN r.survey_bar_code IS NULL THEN '"Review"' ELSE '"Please tell us about your visit."' END
        || ',"response":' || quote(nullif(r.comment, '')) || ',"questionType":"Free Form (Text Area)","questionCode":"COMMENT","noOfSentiments":' || r.sentiment_count
        || ',"overallCommentSentiment":{"score":' || round(1 + r.score * 0.8, 2) || ',"label":"' || mood(1 + r.score * 0.8) || '"},"sentiments":[' || r.sentiments || ']'
        || member('liabilities', '[{"liabilityId":' || (9223372036854775807 - r.id) || ',' || y.text || '}]') || '}', '')`,
    )}, '') || ']'
    || member('taskDetails', '{"id":' || r.task_id || member('status', quote(r.task_status)) || member('ownerEmail', quote(o.email))
      || member('ownerName', quote(o.name)) || CASE WHEN r.task_status = 'completed' THEN member('closureComment', quote(coalesce(a.closure, 'Resolved.'))) ELSE '' END || '}')
    || CASE WHEN r.words > 0 AND r.id % 7 = 0 THEN ',"textAnalytics":{"language":"en","words":' || r.words || '}' ELSE '' END
    || member(CASE WHEN r.id % 2 = 0 THEN 'engagement' ELSE 'engagements' END,
      '[{"engagement":' || quote(a.engagement) || member('engagementTime', quote(instant(r.answered))) || '}]')
  ) AS text
FROM written r
LEFT JOIN location l ON l.id = r.location_id
LEFT JOIN provider p ON p.id = r.provider_id
LEFT JOIN source s ON s.id = r.source_id
LEFT JOIN brand b ON b.id = l.brand_id
LEFT JOIN liability y ON y.n = r.liability
LEFT JOIN owner o ON o.n = r.task_owner
LEFT JOIN answer a ON a.n = r.answer;
`
