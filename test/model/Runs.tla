-------------------------------- MODULE Runs --------------------------------
(* Runs one after the other: cutoff, cursor, lookback, slack, resume tokens, the second read, and deletions. A read  *)
(* is taken for what Reading.tla shows of it: it reads every row that is untouched while it lasts, each in some page, *)
(* and of touched rows it may read whatever is served at some time, or nothing. Time is counted in ticks of the clock *)
(* that stamps rows.                                                                                                  *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
  Ids,        \* of reviews; all of them exist when the first run begins
  Changes,    \* how many times a review may be changed, deleted or restored
  MaxTime,    \* the last tick
  Lag,        \* the longest time between a modifiedTime and the moment it becomes visible
  Ahead,      \* how far `Date` may be ahead of the clock that stamps rows, and
  Behind,     \* how far behind it; one of these for a whole history
  Kills,      \* how many times the process may be killed
  Deletions,  \* whether reviews may be deleted
  \* The safeguards; FALSE removes one.
  Lookback, ExtraSecond, Slack, CursorFromRows, CursorAtEnd, SecondScan, LaterEventWins

VARIABLES
  clock, skew, left,
  live,     \* the modifiedTime of each review's last version; 0: it is deleted
  shown,    \* what the export of reviews serves
  gone,     \* the time of each review's last deletion; 0: it was never deleted
  goneShown,\* what the export of deletions serves
  rows,     \* the destination's reviews: the modifiedTime of each; 0: none
  deleted,  \* the deletions that the destination knows
  cursor, slack, recent, token,  \* each stream's state; `recent`: the rows sent that the next filter serves again
  scan,     \* the scan under way
  touched,  \* for each stream the ids whose served row has changed since its scan began
  isQuiet   \* nothing has changed since the last run began, and everything was visible and before its cutoff

service == <<clock, skew, left, live, shown, gone, goneShown>>
state == <<cursor, slack, recent, token>>
vars == <<service, rows, deleted, state, scan, touched, isQuiet>>

None == -100
Idle == [stream |-> "none"]
Streams == IF Deletions THEN {"deletions", "reviews"} ELSE {"reviews"}
FirstStream == IF Deletions THEN "deletions" ELSE "reviews"
Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
MaxOf(S) == CHOOSE x \in S : \A y \in S : y <= x

-----------------------------------------------------------------------------
(* The service *)

IsPending == shown # live \/ \E id \in Ids : goneShown[id] # gone[id]
Touch(stream, id) == touched' = [touched EXCEPT ![stream] = @ \cup {id}]

(* A review is changed, or a deleted one restored. *)
Change(id) ==
  /\ left.changes > 0
  /\ live[id] < clock /\ gone[id] < clock
  /\ live' = [live EXCEPT ![id] = clock]
  /\ left' = [left EXCEPT !.changes = @ - 1]
  /\ UNCHANGED <<shown, gone, goneShown, touched>>

Delete(id) ==
  /\ Deletions
  /\ left.changes > 0
  /\ live[id] # 0 /\ live[id] < clock
  /\ live' = [live EXCEPT ![id] = 0]
  /\ gone' = [gone EXCEPT ![id] = clock]
  /\ left' = [left EXCEPT !.changes = @ - 1]
  /\ UNCHANGED <<shown, goneShown, touched>>

Show(id) ==
  \/ /\ shown[id] # live[id]
     /\ shown' = [shown EXCEPT ![id] = live[id]]
     /\ Touch("reviews", id)
     /\ UNCHANGED goneShown
  \/ /\ goneShown[id] # gone[id]
     /\ goneShown' = [goneShown EXCEPT ![id] = gone[id]]
     /\ Touch("deletions", id)
     /\ UNCHANGED shown

(* The clock goes on, unless something must become visible before. *)
IsOverdue(id) ==
  \/ shown[id] # live[id] /\ clock >= Lag + (IF live[id] = 0 THEN gone[id] ELSE live[id])
  \/ goneShown[id] # gone[id] /\ clock >= Lag + gone[id]

Tick ==
  /\ clock < MaxTime
  /\ \A id \in Ids : ~IsOverdue(id)
  /\ clock' = clock + 1
  /\ UNCHANGED <<skew, left, live, shown, gone, goneShown, rows, deleted, state, scan, touched, isQuiet>>

Service ==
  /\ \E id \in Ids : \/ Change(id) \/ Delete(id)
                     \/ Show(id) /\ UNCHANGED <<left, live, gone>>
  /\ isQuiet' = FALSE
  /\ UNCHANGED <<clock, skew, rows, deleted, state, scan>>

-----------------------------------------------------------------------------
(* The reader: cutoff.ts in connector/reading, export-reader.ts and export-state.ts in connector/streams *)

Served(stream) == IF stream = "reviews" THEN shown ELSE goneShown

NoRows == [id \in Ids |-> 0]

(* filterFrom in cutoff.ts: rows later than this are served. *)
FilterFrom(reached, back) ==
  IF reached = None THEN 0 ELSE reached - back - (IF Lookback THEN Lag ELSE 0) - (IF ExtraSecond THEN 1 ELSE 0)

NewScan(stream) ==
  [stream |-> stream, begun |-> clock, cutoff |-> clock + skew, from |-> FilterFrom(cursor[stream], slack[stream]),
   unread |-> Ids, read |-> NoRows, newest |-> None, rowClock |-> None, isResumed |-> FALSE]

(* A token may be too old; then the scan begins anew. *)
Begin(stream) ==
  \/ /\ scan' = NewScan(stream)
     /\ touched' = [touched EXCEPT ![stream] = {}]
  \/ /\ token[stream].stream # "none"
     /\ scan' = [token[stream] EXCEPT !.isResumed = TRUE]
     /\ UNCHANGED touched

Start ==
  /\ scan.stream = "none"
  /\ Begin(FirstStream)
  /\ isQuiet' = (~IsPending /\ \A id \in Ids : Max(live[id], gone[id]) <= clock + skew)
  /\ UNCHANGED <<service, rows, deleted, state>>

(* For each id the later event wins. *)
Upsert(id, time) ==
  IF LaterEventWins /\ (deleted[id] >= time \/ rows[id] > time) THEN rows[id] ELSE time
Remove(id, time) == IF LaterEventWins /\ rows[id] > time THEN rows[id] ELSE 0

(* A page serves some rows. It has two at least, since it overlaps the one before, or is all of the export. *)
Page ==
  /\ scan.stream \in Streams
  /\ \E ids \in SUBSET Ids :
       LET stream == scan.stream
           of == Served(stream)
           all == {id \in Ids : of[id] # 0 /\ of[id] > scan.from}
           page == ids \cap all
           due == {id \in page : of[id] <= scan.cutoff}
           sent == {id \in due : recent[stream][id] # of[id]}
           \* The newest modifiedTime of a page but one, less the time since the scan began.
           stamped == {id \in page : of[id] <= clock + skew + 1}
           confirmed == {id \in stamped : \E other \in stamped : other # id /\ of[other] >= of[id]}
           newest == MaxOf({scan.newest} \cup {of[id] : id \in due})
           rowClock == MaxOf({scan.rowClock} \cup {of[id] - (clock - scan.begun) : id \in confirmed})
           read == [id \in Ids |-> IF id \in due THEN of[id] ELSE scan.read[id]]
           next == [scan EXCEPT !.unread = @ \ ids, !.read = read, !.newest = newest, !.rowClock = rowClock]
       IN /\ ids \cap scan.unread # {}
          /\ ids \subseteq all
          /\ Cardinality(page) >= 2 \/ page = all
          /\ scan' = next
          /\ token' = IF left.kills = 0 THEN token ELSE [token EXCEPT ![stream] = next]
          /\ cursor' = IF CursorAtEnd THEN cursor ELSE [cursor EXCEPT ![stream] = Max(@, newest)]
          /\ IF stream = "reviews"
             THEN /\ rows' = [id \in Ids |-> IF id \in sent THEN Upsert(id, of[id]) ELSE rows[id]]
                  /\ UNCHANGED deleted
             ELSE /\ deleted' = [id \in Ids |-> IF id \in sent THEN Max(deleted[id], of[id]) ELSE deleted[id]]
                  /\ rows' = [id \in Ids |-> IF id \in sent THEN Remove(id, of[id]) ELSE rows[id]]
  /\ UNCHANGED <<service, slack, recent, touched, isQuiet>>

(* completeExportState in export-state.ts. What was not read was touched, or is not served. *)
End ==
  /\ scan.stream \in Streams
  /\ \A id \in scan.unread :
       \/ id \in touched[scan.stream]
       \/ Served(scan.stream)[id] <= scan.from
       \/ Served(scan.stream)[id] = 0
  /\ LET stream == scan.stream
         certain == IF scan.rowClock = None THEN None ELSE Min(scan.cutoff, scan.rowClock)
         before == IF cursor[stream] = None THEN None ELSE cursor[stream] - slack[stream]
         next == Max(cursor[stream], IF CursorFromRows THEN scan.newest ELSE scan.cutoff)
         nextCertain == Max(before, certain)
         nextSlack == IF Slack /\ next # None THEN Max(0, next - Max(0, nextCertain)) ELSE 0
         from == FilterFrom(next, nextSlack)
     IN /\ cursor' = [cursor EXCEPT ![stream] = next]
        /\ slack' = [slack EXCEPT ![stream] = nextSlack]
        /\ recent' = [recent EXCEPT ![stream] = [id \in Ids |-> IF scan.read[id] > from THEN scan.read[id] ELSE 0]]
        /\ token' = [token EXCEPT ![stream] = Idle]
        /\ scan' = [stream |-> "ended", of |-> stream, isResumed |-> scan.isResumed]
  /\ UNCHANGED <<service, rows, deleted, touched, isQuiet>>

(* After a scan: a second one if it was resumed, then the next stream, then the end of the run. *)
GoOn ==
  /\ scan.stream = "ended"
  /\ IF scan.isResumed /\ SecondScan THEN Begin(scan.of)
     ELSE IF scan.of = "deletions" THEN Begin("reviews")
     ELSE scan' = Idle /\ UNCHANGED touched
  /\ UNCHANGED <<service, rows, deleted, state, isQuiet>>

Kill ==
  /\ left.kills > 0
  /\ scan.stream # "none"
  /\ scan' = Idle
  /\ left' = [left EXCEPT !.kills = @ - 1]
  /\ isQuiet' = FALSE
  /\ UNCHANGED <<clock, skew, live, shown, gone, goneShown, rows, deleted, state, touched>>

Init ==
  /\ clock = 1
  /\ skew \in Ahead \cup {-n : n \in Behind}
  /\ left = [changes |-> Changes, kills |-> Kills]
  /\ live = [id \in Ids |-> 1]
  /\ shown = live
  /\ gone = NoRows
  /\ goneShown = gone
  /\ rows = NoRows
  /\ deleted = NoRows
  /\ cursor = [stream \in Streams |-> None]
  /\ slack = [stream \in Streams |-> 0]
  /\ recent = [stream \in Streams |-> NoRows]
  /\ token = [stream \in Streams |-> Idle]
  /\ scan = Idle
  /\ touched = [stream \in Streams |-> {}]
  /\ isQuiet = FALSE

Next == Tick \/ Service \/ Start \/ Page \/ End \/ GoOn \/ Kill

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------

(* Which id is which makes no difference. *)
Symmetry == Permutations(Ids)

(* What the runs promise: after a run during which nothing changed, the destination holds what the service holds. *)
DestinationIsEqual == scan.stream = "none" /\ isQuiet => rows = live
=============================================================================
