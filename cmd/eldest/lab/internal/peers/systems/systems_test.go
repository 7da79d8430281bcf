package systems_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/systems"
)

// The names that "eldest bench peers" offers without the systems are those of the systems.
func TestNames(t *testing.T) {
	var names []string
	for _, s := range systems.All() {
		names = append(names, s.Name)
		for _, setting := range peer.SettingNames {
			require.NotEmpty(t, s.Settings[setting].Values, s.Name)
		}
	}
	require.Equal(t, peer.Names, names)
}
