// SPDX-License-Identifier: Apache-2.0

// Package data is the folder of the packages that describe the memory of an
// operation, below the generic API of package mpi: no type parameter reaches
// this level. The package itself is empty.
//
// In reading order:
//
//	dtype   datatypes: the basic types of an element, their places, how they are packed
//	buffer  the memory of one operation: address, count, datatype, packed bytes
//	kernel  predefined reductions as loops over one kind of element
//
// Where to change what: a new constructor of datatypes goes to dtype and gets
// its public name in mpi; a new reduction is a row in kernel with its plain
// twin; design pages 007, 008 and 011 tell why they are as they are.
package data
