------------------------------- MODULE Reading -------------------------------
(* One read of a list that changes meanwhile: pages that join, the end probe, windows that are counted, rounds. *)
(* The rules are those of connector/reading, with pages of two rows that overlap by one. README.md says what is *)
(* left out.                                                                                                    *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Start,     \* what is tried first: "pages", "window" or "rounds"
  Order,     \* of the list: "ascending" or "descending" by modifiedTime, or "stored": a changed row keeps its place
  Filter,    \* the filter by mention time: "kept", "ignored", or "none", as for deletions
  Unmentioned, \* whether a row has no mention time
  EndRows,   \* so many rows show an end; the code takes 4
  Changes,   \* how many rows may be changed, deleted or added
  Moves,     \* how many untouched rows may move elsewhere, which breaks A3
  Cuts,      \* how many answers may end early
  Outages,   \* how many answers may be empty, after the first rows
  Lagging,   \* whether each answer may come from a replica that lacks the last change
  Kills,     \* how many times the process may be killed between two pages
  \* The safeguards; FALSE removes one.
  Overlap,    \* a page must have a row that was read before
  Probe,      \* behind a short page the end is probed
  PassKnown,  \* a full page of known rows is no end
  KnownEnd,   \* one of the rows that show an end must be known
  EmptyRule,  \* an empty answer proves nothing
  OrderCheck, \* known rows keep their order, with no unread old row in front of one
  PlaceCheck, \* known rows move towards the end no further than changed rows explain
  TokenMoved, \* the token holds how far they have moved
  Counts,     \* windows are counted
  WholeGroup, \* a count reads the whole group, not only its last rows
  Sweep,      \* rows without a mention time are looked for
  Bracket,    \* by the end of the list within the widest bounds, before and after its end without bounds
  RoundIds    \* a round must have as many ids of its own as the list is long

VARIABLES list, replica, clock, left, untouched, s
vars == <<list, replica, clock, left, untouched, s>>

PageSize == 2
MaxTries == 1              \* how often an answer is asked for again
MaxSteps == 2              \* how many steps back in a row; the code takes 5
ProbeSize == EndRows + 2   \* the code asks for 13
MaxRounds == 3             \* the code takes 14
Whole == <<1, 4>>
(* The seconds of the rows' mention times; 0: it has none. *)
Mention == IF Unmentioned THEN <<1, 2, 3, 0, 4>> ELSE <<1, 2, 3, 2, 4>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Range(q) == {q[i] : i \in DOMAIN q}
Least(S) == CHOOSE x \in S : \A y \in S : x <= y
Greatest(S) == CHOOSE x \in S : \A y \in S : y <= x
Index(q, x) == CHOOSE i \in DOMAIN q : q[i] = x
Ids(S) == {row.id : row \in S}
RemoveAt(q, i) == SubSeq(q, 1, i - 1) \o SubSeq(q, i + 1, Len(q))
InsertAt(q, i, x) == SubSeq(q, 1, i - 1) \o <<x>> \o SubSeq(q, i, Len(q))

(* The next run reads rows again that are later than the cutoff less the lookback. *)
OldUntil == 10
Cutoff == 20
IsOld(row) == row.time <= OldUntil
IsLate(row) == row.time > Cutoff

-----------------------------------------------------------------------------
(* The service *)

Place(q, row, at) ==
  CASE Order = "ascending" -> 1 + Cardinality({i \in DOMAIN q : q[i].time <= row.time})
    [] Order = "descending" -> 1 + Cardinality({i \in DOMAIN q : q[i].time > row.time})
    [] Order = "stored" -> at

Times == {Cutoff - 1, clock}  \* a change becomes visible late, or is later than the cutoff
NewId == 1 + Greatest(Ids(Range(list) \cup Range(replica)) \cup {Len(Mention)})

Change ==
  /\ left.changes > 0
  /\ \/ \E i \in DOMAIN list :
          \/ list' = RemoveAt(list, i) /\ untouched' = untouched \ {list[i]}
          \/ \E time \in {t \in Times : t > list[i].time} :
               LET row == [list[i] EXCEPT !.time = time]
                   others == RemoveAt(list, i)
               IN list' = InsertAt(others, Place(others, row, i), row) /\ untouched' = untouched \ {list[i]}
     \/ \E time \in Times, at \in {2, 4} :
          LET row == [id |-> NewId, time |-> time, at |-> at]
          IN list' = InsertAt(list, Place(list, row, Len(list) + 1), row) /\ UNCHANGED untouched
  /\ replica' = list
  /\ clock' = clock + 1
  /\ left' = [left EXCEPT !.changes = @ - 1]

Move ==
  /\ left.moves > 0
  /\ \E i \in DOMAIN list, j \in DOMAIN list :
       i # j /\ list' = InsertAt(RemoveAt(list, i), j, list[i])
  /\ replica' = list'
  /\ left' = [left EXCEPT !.moves = @ - 1]
  /\ UNCHANGED <<untouched, clock>>

InWindow(row, w) == w = Whole \/ (row.at >= w[1] /\ row.at <= w[2])
Matching(q, w, isBounded) ==
  SelectSeq(q, LAMBDA row : Filter = "ignored" \/ (InWindow(row, w) /\ (isBounded => row.at > 0)))

(* The reader asks, and `take` makes its next state of the answer. *)
Ask(w, isBounded, offset, limit, take(_)) ==
  \E q \in IF Lagging THEN {list, replica} ELSE {list} :
    LET matching == Matching(q, w, isBounded)
        whole == SubSeq(matching, offset + 1, Min(offset + limit, Len(matching)))
    IN \/ s' = take(whole) /\ UNCHANGED left
       \/ /\ left.cuts > 0
          /\ \E n \in 1..Len(whole) - 1 : s' = take(SubSeq(whole, 1, n))
          /\ left' = [left EXCEPT !.cuts = @ - 1]
       \/ /\ left.outages > 0
          /\ whole # <<>> /\ s.known # <<>>
          /\ s' = take(<<>>)
          /\ left' = [left EXCEPT !.outages = @ - 1]

-----------------------------------------------------------------------------
(* What follows a window, a pass, a round. Each operator gives the reader's next state. *)

Incomplete == [s EXCEPT !.phase = "incomplete"]
Again == [s EXCEPT !.tries = @ + 1]

StartPass(t) == [t EXCEPT !.phase = "pages", !.offset = 0, !.tries = 0, !.steps = 0, !.ids = {}, !.isNew = FALSE]
StartRounds(w) == StartPass([s EXCEPT !.isRounds = TRUE, !.window = w, !.round = 1])
Count(t, groups) == [t EXCEPT !.phase = "count", !.groups = groups, !.group = <<>>, !.tries = 0]
ReadWindow(t, w) == [t EXCEPT !.phase = "window", !.window = w, !.tries = 0]

(* A3 is broken: the list is read in windows, or in rounds where no filter cuts it. *)
FallBack ==
  IF s.isRounds THEN Incomplete
  ELSE IF Filter = "none" THEN StartRounds(Whole)
  ELSE ReadWindow(s, Whole)

(* Two windows in a row are counted together before the next is read. The last look is for rows without a mention *)
(* time.                                                                                                           *)
NextWindow(t) ==
  IF t.groups # <<>> THEN [t EXCEPT !.phase = "count"]
  ELSE IF Counts /\ (Len(t.group) = 2 \/ (t.group # <<>> /\ t.todo = <<>>)) THEN Count(t, <<t.group>>)
  ELSE IF t.todo # <<>> THEN [ReadWindow(t, Head(t.todo)) EXCEPT !.todo = Tail(@)]
  ELSE [t EXCEPT !.phase = IF Sweep THEN "sweep" ELSE "complete", !.window = Whole, !.tries = 0]

(* Of a list of `length` rows. *)
EndOfRound(length) ==
  IF ~s.isNew /\ (RoundIds => Cardinality(s.ids) = length)
  THEN IF s.window = Whole THEN [s EXCEPT !.phase = "complete"]
       ELSE NextWindow([s EXCEPT !.isRounds = FALSE, !.found = @ \cup s.ids])
  ELSE IF s.round = MaxRounds THEN Incomplete
  ELSE StartPass([s EXCEPT !.round = @ + 1])

EndOfPass(length, moved) ==
  IF s.isRounds THEN EndOfRound(length)
  ELSE [s EXCEPT !.phase = IF PlaceCheck /\ moved > 0 THEN "moved" ELSE "complete", !.moved = moved]

-----------------------------------------------------------------------------
(* Pages and the end probe *)

Known == Range(s.known)
KnownIn(answer) == {i \in DOMAIN answer : answer[i] \in Known}

StepBack ==
  IF s.steps = MaxSteps THEN FallBack
  ELSE [s EXCEPT !.phase = "pages", !.offset = Max(0, @ - PageSize * 2 ^ s.steps), !.steps = @ + 1, !.tries = 0]

(* Known rows must stand here: asks again, then one page back. Where nothing is known, the list is asked for twice. *)
Missing ==
  IF s.tries < MaxTries THEN Again
  ELSE IF s.known = <<>> THEN [s EXCEPT !.phase = "complete"]
  ELSE StepBack

(* The known rows in the order of the list, with those of an answer. *)
RECURSIVE Merge(_, _, _)
Merge(known, answer, i) ==
  IF i > Len(answer) THEN known
  ELSE IF answer[i] \in Range(known) THEN Merge(known, answer, i + 1)
  ELSE LET behind == {j \in i + 1..Len(answer) : answer[j] \in Range(known)}
           at == IF i > 1 THEN Index(known, answer[i - 1]) + 1
                 ELSE IF behind # {} THEN Index(known, answer[Least(behind)])
                 ELSE IF s.offset = 0 THEN 1 ELSE Len(known) + 1
       IN Merge(InsertAt(known, at, answer[i]), answer, i + 1)

(* Adds a page: known rows with the places where they were first seen, and how far they have moved towards the end. *)
Shift(rows, offset) ==
  Greatest({offset + i - s.place[rows[i]] : i \in {i \in DOMAIN rows : rows[i] \in DOMAIN s.place}} \cup {s.moved})

Add(page) ==
  LET places == [i \in DOMAIN page |-> s.offset + i]
      placed == DOMAIN s.place
  IN [s EXCEPT !.known = Merge(@, page, 1),
               !.place = [row \in placed \cup Range(page) |->
                            IF row \in placed THEN @[row] ELSE places[Index(page, row)]],
               !.moved = Shift(page, s.offset),
               !.ids = IF s.isRounds THEN @ \cup Ids(Range(page)) ELSE @,
               !.isNew = @ \/ \E row \in Range(page) : row \notin Known /\ ~IsLate(row),
               !.page = page, !.read = @ \cup Range(page),
               !.tries = 0, !.steps = 0]

TakePage(page) ==
  LET known == KnownIn(page)
      isOrdered == \A i, j \in known : i < j => Index(s.known, page[i]) < Index(s.known, page[j])
      \* Rows before those of the token were read before it was made.
      isInFront == \E i \in DOMAIN page \ known, j \in known :
                     i < j /\ IsOld(page[i]) /\ ~(s.isResumed /\ page[j] = s.known[1])
      length == s.offset + Len(page)
  IN IF page = <<>> THEN IF EmptyRule THEN Missing ELSE EndOfPass(length, s.moved)
     ELSE IF ~s.isRounds /\ OrderCheck /\ (~isOrdered \/ isInFront) THEN FallBack
     ELSE IF ~s.isRounds /\ Overlap /\ s.offset > 0 /\ known = {} THEN StepBack
     ELSE IF Len(page) = PageSize /\ (known # DOMAIN page \/ ~Probe \/ PassKnown)
          THEN [Add(page) EXCEPT !.offset = length - (IF Overlap THEN 1 ELSE 0)]
     ELSE IF Probe THEN [Add(page) EXCEPT !.phase = "probe", !.length = length]
     ELSE LET t == Add(page) IN IF s.isRounds THEN t ELSE [t EXCEPT !.phase = "complete"]

ReadPage ==
  /\ s.phase = "pages"
  /\ Ask(s.window, s.window # Whole, s.offset, PageSize, TakePage)

TakeProbe(rows) ==
  LET expected == Min(EndRows, s.length)
      length == s.length - expected + Len(rows)
      known == KnownIn(rows)
      unread == {i \in DOMAIN rows \ known : ~IsLate(rows[i])}
      isLastThere == \E i \in known : rows[i] = s.page[Len(s.page)] /\ \A j \in i + 1..Len(rows) : IsLate(rows[j])
      isExact == Len(rows) = expected /\ (KnownEnd => known # {})
  IN IF rows = <<>> THEN Missing
     ELSE IF unread # {} THEN [s EXCEPT !.phase = "pages", !.offset = Max(0, s.length - 1), !.tries = 0]
     ELSE IF Len(rows) < expected THEN [s EXCEPT !.length = @ - (expected - Len(rows)), !.tries = 0]
     ELSE IF Len(rows) < ProbeSize /\ (isExact \/ isLastThere)
          THEN EndOfPass(length, Shift(rows, s.length - expected))
     ELSE [s EXCEPT !.phase = "pages", !.offset = @ + Len(rows) - expected, !.tries = 0]

(* The next run goes on with the token: the offset, the rows of the last page, and how far rows have moved. *)
Kill ==
  /\ s.phase = "pages" /\ ~s.isRounds /\ s.page # <<>>
  /\ left.kills > 0
  /\ left' = [left EXCEPT !.kills = @ - 1]
  /\ s' = [s EXCEPT !.known = s.page, !.place = [row \in Range(s.page) |-> @[row]], !.isResumed = TRUE,
                     !.moved = IF TokenMoved THEN @ ELSE 0, !.tries = 0, !.steps = 0]

ProbeEnd ==
  /\ s.phase = "probe"
  /\ Ask(s.window, s.window # Whole, Max(0, s.length - EndRows), ProbeSize, TakeProbe)

(* How many rows have changed since the pass began? Fewer than there are only lead to windows. *)
AskChanges ==
  /\ s.phase = "moved"
  /\ s' = IF s.moved > Cardinality({i \in DOMAIN list : ~IsOld(list[i])}) THEN FallBack
          ELSE [s EXCEPT !.phase = "complete"]
  /\ UNCHANGED left

-----------------------------------------------------------------------------
(* Windows *)

(* Rows that this run has read, the nearest first. *)
Distance(row) == IF row.at < s.window[1] THEN s.window[1] - row.at ELSE row.at - s.window[2]
Anchors == {row \in Known : row.at > 0 /\ ~InWindow(row, s.window)}
Anchor == CHOOSE row \in Anchors : Cardinality({other \in Anchors : Distance(other) < Distance(row)}) <= s.tries
Hull(w, v) == <<Min(w[1], v[1]), Max(w[2], v[2])>>

AddKnown(rows) ==
  [s EXCEPT !.known = @ \o SelectSeq(rows, LAMBDA row : row \notin Known), !.read = @ \cup Range(rows)]

(* A window that is one answer is complete as of that answer. *)
AddWindow(rows) ==
  LET window == [from |-> s.window[1], to |-> s.window[2], ids |-> Ids(Range(rows))]
  IN NextWindow([AddKnown(rows) EXCEPT !.group = Append(@, window), !.found = @ \cup Ids(Range(rows))])

Halves(w) == LET middle == (w[1] + w[2]) \div 2 IN <<<<w[1], middle>>, <<middle + 1, w[2]>>>>

TakeWindow(rows) ==
  LET halves == Halves(s.window)
  IN IF \E i \in DOMAIN rows : ~InWindow(rows[i], s.window) \/ rows[i].at = 0 THEN StartRounds(Whole)
     ELSE IF rows = <<>> /\ EmptyRule THEN [s EXCEPT !.phase = "empty"]
     ELSE IF Len(rows) < PageSize THEN AddWindow(rows)
     ELSE IF s.window[1] < s.window[2] THEN [ReadWindow(s, halves[1]) EXCEPT !.todo = <<halves[2]>> \o @]
     ELSE IF Counts /\ s.group # <<>> THEN [Count(s, <<s.group>>) EXCEPT !.todo = <<s.window>> \o @]
     ELSE StartRounds(s.window)

AskWindow ==
  /\ s.phase = "window"
  /\ Ask(s.window, TRUE, 0, PageSize, TakeWindow)

(* An empty window is asked for together with a known row, the next nearest at each try. *)
TakeEmpty(rows) ==
  IF \E i \in DOMAIN rows : InWindow(rows[i], s.window) THEN ReadWindow(s, s.window)
  ELSE IF Anchor.id \in Ids(Range(rows)) /\ Len(rows) < ProbeSize THEN AddWindow(<<>>)
  ELSE IF s.tries = MaxTries THEN Incomplete ELSE Again

AskEmpty ==
  /\ s.phase = "empty"
  /\ IF Anchors = {} THEN s' = Incomplete /\ UNCHANGED left
     ELSE Ask(Hull(s.window, <<Anchor.at, Anchor.at>>), TRUE, 0, ProbeSize, TakeEmpty)

(* A group is read once more, whole: its list must have as many rows as it has distinct ids, each known or late. *)
GroupIds(group) == UNION {group[i].ids : i \in DOMAIN group}
GroupHull(group) == <<group[1].from, group[Len(group)].to>>
CountFrom(group) == IF WholeGroup THEN 0 ELSE Max(0, Cardinality(GroupIds(group)) - EndRows)

TakeCount(rows) ==
  LET group == Head(s.groups)
      others == Tail(s.groups)
      isRight == /\ Len(rows) = Cardinality(GroupIds(group)) - CountFrom(group)
                 /\ \A i \in DOMAIN rows : rows[i] \in Known \/ IsLate(rows[i])
  IN IF isRight THEN NextWindow([s EXCEPT !.groups = others])
     ELSE IF Len(group) > 1 THEN [s EXCEPT !.groups = [i \in DOMAIN group |-> <<group[i]>>] \o others]
     ELSE IF s.again = MaxTries THEN Incomplete
     ELSE NextWindow([s EXCEPT !.again = @ + 1, !.todo = <<GroupHull(group)>> \o @, !.groups = others])

AskCount ==
  /\ s.phase = "count"
  /\ LET group == Head(s.groups)
     IN Ask(GroupHull(group), TRUE, CountFrom(group), Cardinality(GroupIds(group)) + 2, TakeCount)

(* Rows without a mention time: the list must end alike within the widest bounds, without bounds, and within them *)
(* again.                                                                                                         *)
TakeSweep(rows) ==
  LET answers == Append(s.answers, rows)
  IN IF Bracket /\ Len(answers) < 3 THEN [s EXCEPT !.answers = answers]
     ELSE IF /\ rows # <<>> /\ Len(rows) < ProbeSize
             /\ \A i \in DOMAIN answers : answers[i] = rows
             /\ Bracket \/ Len(rows) = Min(EndRows, Cardinality(s.found))
          THEN [s EXCEPT !.phase = "complete"]
     ELSE StartRounds(Whole)

AskSweep ==
  /\ s.phase = "sweep"
  /\ Ask(Whole, Bracket /\ Len(s.answers) # 1, Max(0, Cardinality(s.found) - EndRows), ProbeSize, TakeSweep)

-----------------------------------------------------------------------------

Init ==
  /\ clock = Cutoff + 1
  /\ list = LET row(i) == [id |-> i, time |-> i, at |-> Mention[i]]
            IN [i \in DOMAIN Mention |-> row(IF Order = "descending" THEN Len(Mention) + 1 - i ELSE i)]
  /\ replica = list
  /\ untouched = Range(list)
  /\ left = [changes |-> Changes, moves |-> Moves, cuts |-> Cuts, outages |-> Outages, kills |-> Kills]
  /\ s = [phase |-> IF Start = "window" THEN "window" ELSE "pages",
          window |-> Whole, offset |-> 0, tries |-> 0, steps |-> 0,
          known |-> <<>>, place |-> <<>>, moved |-> 0, page |-> <<>>, length |-> 0, read |-> {}, isResumed |-> FALSE,
          isRounds |-> (Start = "rounds"), round |-> 1, ids |-> {}, isNew |-> FALSE,
          todo |-> <<>>, group |-> <<>>, groups |-> <<>>, found |-> {}, again |-> 0, answers |-> <<>>]

IsOver == s.phase \in {"complete", "incomplete"}

Read ==
  /\ ReadPage \/ Kill \/ ProbeEnd \/ AskChanges \/ AskWindow \/ AskEmpty \/ AskCount \/ AskSweep
  /\ UNCHANGED <<list, replica, clock, untouched>>

Next == ~IsOver /\ (Read \/ ((Change \/ Move) /\ UNCHANGED s))

(* A scan that ends complete has read every row that nobody touched since it began. *)
NothingLost == s.phase = "complete" => untouched \subseteq s.read
=============================================================================
