package transfer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

func member(lease int64, token eldest.Token) Member {
	return Member{Candidate: eldest.Candidate{Key: keys.Candidate("e", lease), Lease: lease, Token: token}, mod: 3}
}

// The encoded messages, which other versions read.
func TestLetterOnTheWire(t *testing.T) {
	l := message{Token: 7, Taken: true, Request: &question{ID: "id", What: Drain, Leader: lifeOf(member(10, 7)), Target: lifeOf(member(11, 9))}}
	require.Equal(t, `{"v":1,"token":7,"request":{"id":"id","do":"drain","leader":{"lease":"a","token":7,"box":3},"target":{"lease":"b","token":9,"box":3}},"taken":true}`, string(l.encode()))
	require.Equal(t, `{"v":1,"token":7,"answer":{"id":"id","done":true,"token":8}}`, string(message{Token: 7, Answer: &answer{ID: "id", Done: true, Token: 8}}.encode()))
	require.Equal(t, `{"v":1,"token":7}`, string(message{Token: 7}.encode()))
	got, err := decode(l.encode())
	require.NoError(t, err)
	l.Version = version
	require.Equal(t, l, got)
}

func TestLettersThatAreNone(t *testing.T) {
	for _, value := range []string{
		"", "{}", "no JSON", `{"v":2,"token":1}`, `{"v":1}`, `{"v":1,"token":-1}`, `{"v":1,"token":1,"taken":true}`,
		`{"v":1,"token":1,"request":{"id":"x"},"answer":{"id":"x"}}`, `[]`, `{"v":1,"token":"1"}`,
	} {
		require.ErrorIs(t, etcdtest.Err(decode([]byte(value))), eldest.ErrForeignValue, value)
	}
	l, err := decode([]byte(`{"v":1,"token":1,"of a later release":{}}`))
	require.NoError(t, err)
	require.Equal(t, eldest.Token(1), l.Token)
}

// A request whose fields contradict each other is invalid.
func TestRequestsThatAreNone(t *testing.T) {
	leader, target, waiter := member(1, 1), member(2, 2), member(3, 3)
	fits := func(what What) question {
		return question{ID: "id", What: what, Leader: lifeOf(leader), Target: lifeOf(target)}
	}
	require.NoError(t, etcdtest.Err(fits(Drain).request("e", leader.Candidate)))
	r, err := fits(Requeue).request("e", waiter.Candidate)
	require.NoError(t, err)
	require.Equal(t, waiter.Candidate, r.Asked)
	require.Equal(t, target.Key, r.Target.Key)
	for name, tc := range map[string]struct {
		change func(*question)
		asked  Member
	}{
		"drain a waiter":       {func(q *question) { q.What = Drain }, waiter},
		"step the leader back": {func(*question) {}, leader},
		"step the target back": {func(*question) {}, target},
		"to itself":            {func(q *question) { q.What, q.Target = Drain, q.Leader }, leader},
		"something else":       {func(q *question) { q.What = "resign" }, waiter},
		"no ID":                {func(q *question) { q.ID = "" }, waiter},
		"a long ID":            {func(q *question) { q.ID = strings.Repeat("x", 65) }, waiter},
		"no lease":             {func(q *question) { q.Leader.Lease = "" }, waiter},
		"a negative lease":     {func(q *question) { q.Target.Lease = "-1" }, waiter},
		"no token":             {func(q *question) { q.Target.Token = 0 }, waiter},
	} {
		q := fits(Requeue)
		tc.change(&q)
		require.ErrorIs(t, etcdtest.Err(q.request("e", tc.asked.Candidate)), eldest.ErrForeignValue, name)
	}
}

// FuzzDecode: every value of a request key is decoded or refused, and a decoded message is encoded
// and decoded to the same message.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"v":1,"token":7}`))
	f.Add([]byte(`{"v":1,"token":7,"taken":true,"request":{"id":"x","do":"drain","leader":{"lease":"a","token":7},"target":{"lease":"b","token":9,"box":4}}}`))
	f.Add([]byte(`{"v":1,"token":7,"answer":{"id":"x","done":false,"reason":"declined"}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		l, err := decode(value)
		if err != nil {
			require.ErrorIs(t, err, eldest.ErrForeignValue)
			return
		}
		again, err := decode(l.encode())
		require.NoError(t, err)
		require.Equal(t, l, again)
		if l.Request != nil {
			r, err := l.Request.request("e", member(1, l.Token).Candidate)
			if err == nil {
				require.NotEqual(t, r.Target.Key, r.Leader.Key)
				require.Positive(t, r.Leader.Token)
			}
		}
	})
}
