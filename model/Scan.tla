-------------------------------- MODULE Scan --------------------------------
(* One scan of an export whose list changes under the reader: pages by offset, witnesses, doubt, rewinds, the end, halves and a    *)
(* sweep, kills and resume tokens. The reader's operators follow connector/export/scan; README.md says which follows which, and   *)
(* what is left out. A row is untouched while its version stays in the list.                                                      *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Order,        \* of the list: "ascending" or "descending" by modifiedTime, or "stored": a changed row keeps its place
  Rows,         \* how many rows the list has when the scan begins
  RowsPerTime,  \* how many of them have the same modifiedTime
  YoungRows,    \* how many of them are younger than the lookback
  PageSize,     \* the most rows of a page
  Changes,      \* how many rows may be changed, deleted or added during the scan
  Shuffles,     \* how many times rows with one modifiedTime may change places
  LateRows,     \* how many rows may become visible late
  ShortPages,   \* how many pages may have fewer rows than asked for although more follow
  Outages,      \* how many answers may be empty although the list has rows
  Kills,        \* how many times the process may be killed
  Unmentioned,  \* the ids of reviews without a mention time
  SampleStep,   \* a resume token holds one row of each page in so many, and those of the overlap
  MaxRewinds,   \* after so many rewinds a pass is not certified
  MaxRereads,   \* how often an end that contradicts what was read is asked for again
  \* The safeguards; FALSE removes one.
  Overlap, Witness, Doubt, WitnessOrder, CountRepeats, ConfirmEnd, WitnessedEnd, RereadEnd, LookAtStart, Halving, Sweep, TokenRows, RowsBeforeToken

VARIABLES
  list,    \* the service's list: versions of rows, in its order
  clock,   \* the modifiedTime of the last change
  left,    \* what may still happen to the service
  first,   \* the list when the scan began
  scan,    \* the reader's state; `ScanState` in state.ts
  history, \* the rows that the pass has read; history.ts
  sent,    \* the versions that the destination has stored
  pending, \* the rows of the last page, and what is still to be done with them: "deliver", "save"
  token    \* the resume token in the state

vars == <<list, clock, left, first, scan, history, sent, pending, token>>

-----------------------------------------------------------------------------
(* Helpers *)

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Range(s) == {s[i] : i \in DOMAIN s}
MaxOf(S) == CHOOSE x \in S : \A y \in S : y <= x
MinOf(S) == CHOOSE x \in S : \A y \in S : x <= y
Remove(s, i) == SubSeq(s, 1, i - 1) \o SubSeq(s, i + 1, Len(s))
InsertAt(s, i, row) == SubSeq(s, 1, i - 1) \o <<row>> \o SubSeq(s, i, Len(s))
None == -1000

(* Two time units lie between two rows of the first list, so that a late row can stand between them. *)
TimeOf(i) == 2 * ((i - 1) \div RowsPerTime + 1)
Cutoff == 2 * Rows + 1
\* Rows later than this may have become visible since the rows around them were read: the cutoff less the lookback.
YoungFrom == IF YoungRows = Rows THEN 0 ELSE TimeOf(Rows - YoungRows)

-----------------------------------------------------------------------------
(* The service *)

(* The places where a version may stand. *)
Places(rows, row, old) ==
  CASE Order = "ascending" ->
         {p \in 1..Len(rows) + 1 : /\ \A i \in 1..p - 1 : rows[i].time <= row.time
                                   /\ \A i \in p..Len(rows) : rows[i].time >= row.time}
    [] Order = "descending" ->
         {p \in 1..Len(rows) + 1 : /\ \A i \in 1..p - 1 : rows[i].time >= row.time
                                   /\ \A i \in p..Len(rows) : rows[i].time <= row.time}
    [] Order = "stored" -> IF old = 0 THEN {Len(rows) + 1} ELSE {old}

NextId == 1 + MaxOf({row.id : row \in Range(list) \cup Range(first)} \cup {0})

Change ==
  /\ left.changes > 0
  /\ \E i \in 1..Len(list) :
       LET row == [id |-> list[i].id, time |-> clock + 1]
           others == Remove(list, i)
       IN \E p \in Places(others, row, i) : list' = InsertAt(others, p, row)
  /\ clock' = clock + 1
  /\ left' = [left EXCEPT !.changes = @ - 1]

Delete ==
  /\ left.changes > 0
  /\ \E i \in 1..Len(list) : list' = Remove(list, i)
  /\ left' = [left EXCEPT !.changes = @ - 1]
  /\ UNCHANGED clock

Add ==
  /\ left.changes > 0
  /\ LET row == [id |-> NextId, time |-> clock + 1]
     IN \E p \in Places(list, row, 0) : list' = InsertAt(list, p, row)
  /\ clock' = clock + 1
  /\ left' = [left EXCEPT !.changes = @ - 1]

(* A row that was added, or a version that was written, before the cutoff becomes visible only now. *)
AppearLate ==
  /\ left.lateRows > 0
  /\ \E time \in YoungFrom + 1..Cutoff :
       \/ LET row == [id |-> NextId, time |-> time]
          IN \E p \in Places(list, row, 0) : list' = InsertAt(list, p, row)
       \/ \E i \in 1..Len(list) :
            /\ list[i].time < time
            /\ LET row == [id |-> list[i].id, time |-> time]
                   others == Remove(list, i)
               IN \E p \in Places(others, row, i) : list' = InsertAt(others, p, row)
  /\ left' = [left EXCEPT !.lateRows = @ - 1]
  /\ UNCHANGED clock

(* Rows with one modifiedTime change places. *)
Shuffle ==
  /\ left.shuffles > 0
  /\ \E f \in [1..Len(list) -> 1..Len(list)] :
       /\ Cardinality(Range(f)) = Len(list)
       /\ \A i \in 1..Len(list) : list[f[i]].time = list[i].time
       /\ list' = [i \in 1..Len(list) |-> list[f[i]]]
       /\ list' # list
  /\ left' = [left EXCEPT !.shuffles = @ - 1]
  /\ UNCHANGED clock

Service ==
  /\ scan.status = "reading"
  /\ Change \/ Delete \/ Add \/ AppearLate \/ Shuffle
  /\ UNCHANGED <<first, scan, history, sent, pending, token>>

-----------------------------------------------------------------------------
(* The reader: what a page shows. Positions are counted in sixteenths, since a row between two known ones stands halfway. *)

One == 16

EmptyHistory == [rows |-> <<>>, lastPosition |-> -One, sampledUntil |-> -One, lastPage |-> <<>>, lastLength |-> None]

Knows(id) == id \in DOMAIN history.rows
KnownPositions(rows) ==
  [i \in DOMAIN rows |-> IF Knows(rows[i].id) /\ history.rows[rows[i].id].time = rows[i].time
                         THEN history.rows[rows[i].id].position ELSE None]

(* assignPositions in history.ts *)
Positions(known, start) ==
  LET places == {i \in DOMAIN known : known[i] # None}
      lastKnown == IF places = {} THEN 0 ELSE MaxOf(places)
      firstKnown == IF places = {} THEN 0 ELSE MinOf(places)
      lastKnownPosition == IF lastKnown = 0 THEN history.lastPosition ELSE known[lastKnown]
      follows == IF lastKnownPosition < history.sampledUntil THEN lastKnownPosition ELSE history.lastPosition
      position[i \in DOMAIN known] ==
        CASE known[i] # None -> known[i]
          [] known[i] = None /\ lastKnown = 0 -> start + One * (i - 1)
          [] known[i] = None /\ lastKnown # 0 /\ i > lastKnown -> follows + One * (i - lastKnown)
          [] known[i] = None /\ i < firstKnown -> known[firstKnown] - One * (firstKnown - i)
          [] OTHER -> LET next == known[MinOf({j \in places : j > i})]
                      IN position[i - 1] + (next - position[i - 1]) \div 2
  IN position

(* checkOrder in history.ts *)
CheckOrder(offset, rows, known) ==
  LET places == {i \in DOMAIN known : known[i] # None}
      lastKnown == IF places = {} THEN 0 ELSE MaxOf(places)
      knownTimes == {rows[i].time : i \in places}
      IsYoung(row) == row.time > YoungFrom
      check[i \in 0..lastKnown] ==
        IF i = 0 THEN [isUnread |-> FALSE, hasUnreadRow |-> FALSE, explained |-> 0, inserted |-> 0]
        ELSE
          LET before == check[i - 1]
              row == rows[i]
          IN IF known[i] = None
             THEN IF Knows(row.id) THEN before
                  ELSE IF IsYoung(row) /\ row.time \notin knownTimes
                       THEN [before EXCEPT !.explained = @ + 1]
                       ELSE [before EXCEPT !.isUnread = TRUE]
             ELSE IF row.time > Cutoff THEN before
             ELSE LET earlier == history.rows[row.id]
                      moved == One * (offset + i - 1 - before.explained) - earlier.index
                  IN [before EXCEPT
                        !.hasUnreadRow = @ \/ (before.isUnread /\ ~earlier.isSampled),
                        !.isUnread = FALSE,
                        !.inserted = IF IsYoung(row) /\ Cardinality(knownTimes) > 1 THEN @ ELSE Max(@, moved)]
      last == check[lastKnown]
  IN [hasUnreadRow |-> last.hasUnreadRow,
      insertedRows |-> (last.inserted + One - 1) \div One,
      isInPlace |-> /\ lastKnown > 0
                    /\ \A i \in 1..lastKnown :
                         known[i] # None /\ history.rows[rows[i].id].index = One * (offset + i - 1)]

(* findDirection in history.ts: whether the newest rows come first; "no", "yes" or "unknown" *)
Direction(before, rows) ==
  LET steps == {rows[i].time - rows[i - 1].time : i \in 2..Len(rows)}
  IN IF before = "no" \/ \E step \in steps : step > 0 THEN "no"
     ELSE IF before = "yes" \/ \E step \in steps : step < 0 THEN "yes" ELSE "unknown"

NewPass == [offset |-> 0, rewindsInARow |-> 0, rewinds |-> 0, fullPagesInARow |-> 0, isConfirmingEnd |-> FALSE,
            missingRows |-> 0, hasRecheckedEnd |-> FALSE, repeatedPages |-> 0, emptyOffset |-> None,
            isNewestFirst |-> "unknown", insertedRows |-> 0, isCutShort |-> FALSE, hasCutPages |-> FALSE, foundAtStart |-> None]

(* Everything that the decision on a page needs; `PageEvidence` in pass.ts. *)
Evidence(rows, s) ==
  LET pass == s.pass
      known == KnownPositions(rows)
      start == IF pass.offset = 0 THEN 0 ELSE history.lastPosition + One
      positions == Positions(known, start)
      end == IF Len(rows) = 0 THEN history.lastPosition ELSE positions[Len(rows)]
      isRepeated == pass.offset > 0 /\ Len(rows) > 0 /\ history.lastPage = rows
      longest == Max(s.longestPage, Len(rows))
      IsDue(row) == row.time <= Cutoff
      window == s.windows[1]
      distance == Max(0, history.lastPosition - end)
  IN [rows |-> rows,
      known |-> known,
      positions |-> positions,
      newRows |-> SelectSeq(rows, LAMBDA row : IsDue(row) /\ (IF Knows(row.id)
                      THEN history.rows[row.id].time < row.time \/ history.rows[row.id].time > Cutoff ELSE TRUE)),
      hasUnread |-> \E i \in DOMAIN rows : known[i] = None /\ IsDue(rows[i]),
      longestPage |-> longest,
      overlap |-> IF Overlap THEN longest \div 2 ELSE 0,
      isNarrow |-> window.kind = "part" /\ window.isBounded,
      isRepeated |-> isRepeated,
      distanceToEnd |-> (distance + One \div 2) \div One,
      isAmongSamples |-> end < history.sampledUntil,
      order |-> IF isRepeated /\ ~CountRepeats THEN [hasUnreadRow |-> FALSE, insertedRows |-> 0, isInPlace |-> FALSE]
                ELSE CheckOrder(pass.offset, rows, known),
      hasRows |-> history.lastPosition >= 0 \/ window.hasRows,
      mayHaveRows |-> window.isBounded,
      witnesses |-> Cardinality({i \in DOMAIN rows : known[i] # None}),
      isInverted |-> \E i, j \in DOMAIN rows : i < j /\ known[i] # None /\ known[j] # None /\ known[i] > known[j]]

-----------------------------------------------------------------------------
(* The reader: what it decides; pass.ts *)

Verdict(tag, pass) == [tag |-> tag, pass |-> pass]

HasTooManyRewinds(pass) == pass.rewinds >= MaxRewinds

(* advancePass: the page is accepted. *)
Advance(pass, e) ==
  LET length == Len(e.rows)
      isShort == length < e.longestPage
      hasNew == Len(e.newRows) > 0
      hasCutPages == pass.hasCutPages \/ (history.lastLength # None /\ history.lastLength < e.longestPage /\ e.hasUnread)
      accepted == [pass EXCEPT
        !.hasCutPages = hasCutPages,
        !.rewindsInARow = 0,
        !.fullPagesInARow = IF isShort THEN 0 ELSE Min(2, @ + 1),
        !.isConfirmingEnd = FALSE,
        !.hasRecheckedEnd = @ /\ ~hasNew,
        !.emptyOffset = None,
        !.isNewestFirst = Direction(pass.isNewestFirst, e.rows),
        !.insertedRows = @ + e.order.insertedRows,
        !.isCutShort = ~hasNew /\ (@ \/ (e.distanceToEnd > 0 /\ pass.fullPagesInARow > 0))]
      end == pass.offset + length
      skipped == IF e.isAmongSamples THEN 0 ELSE e.distanceToEnd
      isEndLikely == ~WitnessedEnd \/ (pass.fullPagesInARow <= (IF e.longestPage = PageSize THEN 0 ELSE 1) /\ ~(hasCutPages /\ pass.rewinds > 0))
  IN IF isShort /\ (~hasNew \/ (e.isNarrow /\ pass.offset = 0))
     THEN Verdict(IF ConfirmEnd THEN "next" ELSE "done",
                  [accepted EXCEPT !.offset = end, !.missingRows = e.distanceToEnd,
                                   !.isConfirmingEnd = isEndLikely \/ e.distanceToEnd > 0 \/ HasTooManyRewinds(pass)])
     ELSE IF isShort /\ ~ConfirmEnd THEN Verdict("done", accepted)
     ELSE Verdict("next", [accepted EXCEPT !.offset = Max(0, end - e.overlap + skipped)])

Uncertified(pass, e) == Verdict("uncertified", Advance(pass, e).pass)

(* rewindPass *)
RewindPass(pass, e) ==
  Verdict("rewind", [pass EXCEPT
    !.offset = Max(0, @ - Max(1, e.longestPage \div 2) * 2 ^ pass.rewindsInARow),
    !.rewindsInARow = @ + 1,
    !.rewinds = @ + 1,
    !.fullPagesInARow = 0,
    !.isConfirmingEnd = FALSE,
    !.emptyOffset = IF Len(e.rows) = 0 THEN pass.offset ELSE None])

RewindFromEnd(pass, overlap) ==
  [pass EXCEPT !.offset = Max(0, @ - overlap), !.rewinds = @ + 1, !.hasRecheckedEnd = pass.missingRows > 0,
               !.isConfirmingEnd = FALSE]

(* checkEnd; "no": it is a page like any other. *)
CheckEnd(pass, e) ==
  LET length == Len(e.rows)
      lastLength == IF history.lastLength = None THEN e.longestPage ELSE history.lastLength
      shorterThan == Min(e.longestPage, IF history.lastLength = None THEN 0 ELSE history.lastLength)
      isInPlace == e.witnesses = 0 \/ (~e.isInverted /\ e.distanceToEnd = 0)
      isShort == length = 0 \/ length < shorterThan
      isMissing == RereadEnd /\ pass.missingRows > 0
      isNearStart == Direction(pass.isNewestFirst, e.rows) = "yes" /\ e.witnesses < length
      isEnd == isShort /\ ~isNearStart /\ (~isMissing \/ (length = 0 /\ pass.hasRecheckedEnd))
  IN IF isMissing /\ pass.insertedRows > 0 THEN Uncertified(pass, e)
     ELSE IF isMissing /\ length = 0 /\ pass.hasRecheckedEnd /\ (pass.isCutShort \/ scan.rereads < MaxRereads)
          THEN Verdict("contradiction", RewindFromEnd(pass, e.overlap))
     ELSE IF isInPlace /\ isEnd /\ ~e.hasUnread THEN Verdict("done", pass)
     ELSE IF isInPlace /\ e.witnesses > 0 THEN Verdict("no", pass)
     ELSE IF HasTooManyRewinds(pass) THEN Uncertified(pass, e)
     ELSE Verdict("rewind", RewindFromEnd(pass, Min(e.overlap, (lastLength + 1) \div 2)))

(* certifyNextPage *)
CertifyNext(before, e) ==
  LET pass == [before EXCEPT !.repeatedPages = IF e.isRepeated THEN @ + 1 ELSE 0]
      length == Len(e.rows)
      hasDoubt == \/ e.order.hasUnreadRow
                  \/ e.order.insertedRows > 0 /\ ~e.isRepeated /\ Direction(pass.isNewestFirst, e.rows) # "yes"
      end == IF pass.isConfirmingEnd THEN CheckEnd(pass, e) ELSE Verdict("no", pass)
      needsWitness == Witness /\ Overlap /\ pass.offset > 0
      isJoined == e.order.isInPlace /\ e.distanceToEnd = 0
  IN IF pass.repeatedPages >= 3 THEN Verdict("uncertified", pass)
     ELSE IF length = 0 /\ pass.offset = 0
     THEN IF RereadEnd /\ (e.hasRows \/ (e.mayHaveRows /\ scan.rereads < MaxRereads))
          THEN Verdict("contradiction", pass) ELSE Verdict("done", pass)
     ELSE IF pass.offset = 0 /\ pass.emptyOffset = length /\ Len(e.newRows) = 0 THEN Verdict("done", pass)
     ELSE IF Witness /\ Overlap /\ Doubt /\ hasDoubt THEN Uncertified(pass, e)
     ELSE IF end.tag # "no" THEN end
     ELSE IF needsWitness /\ ~isJoined /\ e.witnesses < Max(1, Min(6, e.overlap))
     THEN IF HasTooManyRewinds(pass)
          THEN IF length = 0 THEN Verdict("contradiction", pass) ELSE Uncertified(pass, e)
          ELSE IF e.overlap = 0 /\ length > 0 THEN Uncertified(pass, e)
          ELSE RewindPass(pass, e)
     ELSE IF WitnessOrder /\ e.isInverted THEN Uncertified(pass, e)
     ELSE Advance(pass, e)

(* checkStart: where the newest come first, the rows that came in front must stand at the start. *)
CheckStart(pass, e) ==
  LET length == Len(e.rows)
      newest == MaxOf({Cutoff} \cup {row.time : row \in {v \in sent : v.time <= Cutoff}})
      older == {i \in DOMAIN e.rows : e.rows[i].time <= newest}
      found == pass.foundAtStart + (IF older = {} THEN length ELSE MinOf(older) - 1)
  IN IF 4 * found >= 3 * pass.insertedRows THEN Verdict("done", pass)
     ELSE IF older = {} /\ length > 0
     THEN Verdict("next", [pass EXCEPT !.offset = @ + length, !.foundAtStart = found])
     ELSE Verdict("uncertified", pass)

(* certifyPage *)
Certify(pass, e) ==
  IF pass.foundAtStart # None THEN CheckStart(pass, e)
  ELSE LET verdict == CertifyNext(pass, e)
           inserted == pass.insertedRows + e.order.insertedRows
       IN IF Witness /\ Doubt /\ LookAtStart /\ verdict.tag = "done" /\ inserted > 0
          THEN Verdict("next", [pass EXCEPT !.insertedRows = inserted, !.offset = 0, !.foundAtStart = 0,
                                            !.isConfirmingEnd = FALSE])
          ELSE verdict

-----------------------------------------------------------------------------
(* The reader: what follows; process-page.ts and progress.ts *)

Highest == Rows + Changes + LateRows + 1
WholeWindow == [kind |-> "part", low |-> 1, high |-> Highest, isBounded |-> FALSE, hasRows |-> FALSE]

NewScan == [status |-> "reading", windows |-> <<WholeWindow>>, pass |-> NewPass, longestPage |-> 0, rereads |-> 0]

InWindow(row, window) ==
  ~window.isBounded \/ (row.id \notin Unmentioned /\ row.id >= window.low /\ row.id <= window.high)

(* The halves of a window: split before the median of the page that failed. A window of one mention time becomes an exact window. *)
Split(window, rows) ==
  LET ids == {row.id : row \in {r \in Range(rows) : r.id \notin Unmentioned}}
      median == CHOOSE id \in ids : Cardinality({x \in ids : x < id}) = Cardinality(ids) \div 2
      middle == IF ids = {} THEN (window.low + window.high + 1) \div 2 ELSE median
      pivot == Min(Max(middle, window.low + 1), window.high)
      Part(low, high) == [kind |-> "part", low |-> low, high |-> high, isBounded |-> TRUE,
                          hasRows |-> \E id \in ids : id >= low /\ id <= high]
      sweep == [kind |-> "sweep", low |-> 1, high |-> Highest, isBounded |-> FALSE, hasRows |-> Len(rows) > 0]
  IN <<Part(window.low, pivot - 1), Part(pivot, window.high)>>
       \o (IF window.isBounded \/ ~Sweep THEN <<>> ELSE <<sweep>>)

NextWindow(s, windows) ==
  [s EXCEPT !.windows = windows, !.pass = NewPass, !.status = IF windows = <<>> THEN "complete" ELSE @]

AddPage(e, offset) ==
  LET ids == {row.id : row \in Range(e.rows)}
      PlaceOf(id) == MaxOf({i \in DOMAIN e.rows : e.rows[i].id = id})
      Entry(id) == LET i == PlaceOf(id)
                   IN [time |-> e.rows[i].time, position |-> e.positions[i], index |-> One * (offset + i - 1),
                       place |-> i - 1, isSampled |-> FALSE]
  IN [history EXCEPT
        !.rows = [id \in ids \cup DOMAIN @ |-> IF id \in ids THEN Entry(id) ELSE @[id]],
        !.lastPosition = MaxOf({@} \cup Range(e.positions)),
        !.lastPage = e.rows,
        !.lastLength = Len(e.rows)]

(* A token after this state. Its rows: those of the overlap, and some of each page. sampleRows in history.ts, resume-token.ts. *)
ToToken(s, h) ==
  LET kept == {id \in DOMAIN h.rows : \/ h.rows[id].place % SampleStep = 0
                                      \/ h.rows[id].position > h.lastPosition - One * (s.longestPage \div 2)}
      Rank(id) == Cardinality({x \in kept : h.rows[x].position < h.rows[id].position})
      rows == [id \in kept |-> [time |-> h.rows[id].time, position |-> h.rows[id].position,
                                index |-> h.rows[id].position, place |-> Rank(id), isSampled |-> TRUE]]
      last == MaxOf({-One} \cup {rows[id].position : id \in kept})
  IN [scan |-> [s EXCEPT !.rereads = 0,
                         !.pass.repeatedPages = 0, !.pass.isNewestFirst = "unknown", !.pass.isCutShort = FALSE,
                         !.pass.hasCutPages = FALSE, !.pass.foundAtStart = None],
      history |-> IF TokenRows THEN [EmptyHistory EXCEPT !.rows = rows, !.lastPosition = last, !.sampledUntil = last]
                  ELSE EmptyHistory]

NoToken == <<>>

(* A page leads to `next`, the rows `out` leave. Only what may still be killed delivers rows and saves a token one after the other. *)
Accept(next, h, out) ==
  /\ scan' = next
  /\ history' = h
  /\ IF left.kills = 0
     THEN /\ sent' = sent \cup out
          /\ UNCHANGED <<pending, token>>
     ELSE /\ pending' = [rows |-> out, todo |-> IF RowsBeforeToken THEN <<"deliver", "save">> ELSE <<"save", "deliver">>]
          /\ UNCHANGED <<sent, token>>

ProcessPage(rows) ==
  LET e == Evidence(rows, scan)
      s == [scan EXCEPT !.longestPage = e.longestPage]
      window == s.windows[1]
      isLook == s.pass.foundAtStart # None
      verdict == Certify(s.pass, e)
      isEndInDoubt == verdict.tag = "next" /\ verdict.pass.isConfirmingEnd /\ verdict.pass.missingRows > 0
      read == IF isLook THEN history ELSE AddPage(e, s.pass.offset)
      out == IF isLook THEN {}
             ELSE {row \in Range(e.newRows) : window.kind = "part" \/ row.id \in Unmentioned}
      taken == [s EXCEPT !.rereads = IF isEndInDoubt THEN @ ELSE 0]
  IN CASE verdict.tag = "contradiction" ->
            IF s.rereads >= MaxRereads THEN Accept([s EXCEPT !.status = "failed"], history, {})
            ELSE Accept([s EXCEPT !.pass = verdict.pass, !.rereads = @ + 1], history, {})
       [] verdict.tag = "rewind" -> Accept([s EXCEPT !.pass = verdict.pass], history, {})
       [] verdict.tag = "next" -> Accept([taken EXCEPT !.pass = verdict.pass], read, out)
       [] verdict.tag = "done" -> Accept(NextWindow(taken, Tail(s.windows)), EmptyHistory, out)
       [] verdict.tag = "uncertified" ->
            IF ~Halving THEN Accept(NextWindow(taken, Tail(s.windows)), EmptyHistory, out)
            \* An exact window, and a sweep in rounds, are not modelled: they are complete with high probability only.
            ELSE IF window.kind = "sweep" \/ window.low = window.high THEN Accept([taken EXCEPT !.status = "rounds"], EmptyHistory, out)
            ELSE Accept(NextWindow(taken, Split(window, rows) \o Tail(s.windows)), EmptyHistory, out)

Idle == [rows |-> {}, todo |-> <<>>]

Ask ==
  /\ scan.status = "reading"
  /\ pending = Idle
  /\ LET all == SelectSeq(list, LAMBDA row : InWindow(row, scan.windows[1]))
         rows == SubSeq(all, scan.pass.offset + 1, Min(scan.pass.offset + PageSize, Len(all)))
     IN \/ ProcessPage(rows) /\ UNCHANGED left
        \/ /\ left.shortPages > 0
           /\ \E length \in 1..Len(rows) - 1 : ProcessPage(SubSeq(rows, 1, length))
           /\ left' = [left EXCEPT !.shortPages = @ - 1]
        \* The first page of a run may be empty without harm: the cursor does not move.
        \/ /\ left.outages > 0
           /\ sent # {}
           /\ Len(rows) > 0
           /\ ProcessPage(<<>>)
           /\ left' = [left EXCEPT !.outages = @ - 1]
  /\ UNCHANGED <<list, clock, first>>

Store ==
  /\ pending.todo # <<>>
  /\ IF Head(pending.todo) = "deliver"
     THEN sent' = sent \cup pending.rows /\ UNCHANGED token
     ELSE token' = ToToken(scan, history) /\ UNCHANGED sent
  /\ pending' = IF Len(pending.todo) = 1 THEN Idle ELSE [pending EXCEPT !.todo = Tail(@)]
  /\ UNCHANGED <<list, clock, left, first, scan, history>>

(* The process is killed at any moment, and the next one goes on from the token. Without one a new scan would begin. *)
Kill ==
  /\ left.kills > 0
  /\ token # NoToken
  /\ scan.status \in {"reading", "complete"}
  /\ scan.status = "complete" => pending # Idle
  /\ scan' = token.scan
  /\ history' = token.history
  /\ pending' = Idle
  /\ left' = [left EXCEPT !.kills = @ - 1]
  /\ UNCHANGED <<list, clock, first, sent, token>>

Init ==
  /\ list = [i \in 1..Rows |-> LET n == IF Order = "descending" THEN Rows + 1 - i ELSE i IN [id |-> n, time |-> TimeOf(n)]]
  /\ clock = Cutoff
  /\ left = [changes |-> Changes, shuffles |-> Shuffles, lateRows |-> LateRows, shortPages |-> ShortPages, outages |-> Outages, kills |-> Kills]
  /\ first = list
  /\ scan = NewScan
  /\ history = EmptyHistory
  /\ sent = {}
  /\ pending = Idle
  /\ token = NoToken

Next == Service \/ Ask \/ Store \/ Kill

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------

(* What a scan promises: once it is complete, every untouched row is stored. *)
NothingLost ==
  scan.status = "complete" /\ pending = Idle => \A row \in Range(first) : row \in Range(list) => row \in sent
=============================================================================
