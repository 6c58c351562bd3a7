// SPDX-License-Identifier: Apache-2.0

package sessions

// Ranks are the ranks in Input of the members that stay and of those that leave. Those
// that stay are the first ranks of the Result, in this order; newcomers follow. Members
// that had ended before are in neither list. All who have a part in the change get the
// same, newcomers too, so that each knows without a message who has which data, and
// who is to have them. Local.
func (c *Change) Ranks() (stay, leave []int) {
	for i := range c.body.Inputs {
		in := &c.body.Inputs[i]
		if in.URI != c.Input {
			continue
		}
		for rank, id := range in.Members.All() {
			switch {
			case c.body.Leaving.Members.Index(id) >= 0:
				leave = append(leave, rank)
			case c.Result == "" || c.body.Result.Members.Index(id) >= 0:
				stay = append(stay, rank)
			}
		}
		return stay, leave
	}
	return nil, nil
}
