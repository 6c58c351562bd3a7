// SPDX-License-Identifier: Apache-2.0

package sessions

// Ranks returns the ranks in Input of the members that stay, and of those that leave. The
// members that stay are the first ranks of the Result, in this order; newcomers follow.
// Members that had ended before the change are in neither list. All processes of the
// change, newcomers too, get the same lists: each knows without a message which process has
// which data, and which process needs them. Local.
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
